#include "otp/runtime/process.h"

#include <bit>
#include <string>
#include <thread>

#include "otp/runtime/core.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime_log.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {
constexpr int32_t kSliceBudget = 1024;  // units of work before others get their turn
constexpr int32_t kMessageCost = 4;
constexpr int32_t kSliceCost = 2;       // what a slice itself counts as work
constexpr uint32_t kResumesMax = 4096;  // frames resumed in one slice
constexpr uint32_t kLettersPerUndertaking = 256;
}  // namespace

Process::~Process() = default;

namespace {

// In a simulation a slice may end anywhere: what an operation does when its slice is used up is
// tried along with the orders.
int32_t slice_budget(SystemImpl& system) {
  if (!system.simulated()) [[likely]]
    return kSliceBudget;
  const uint64_t random = system.random();
  return random % 4 == 0 ? static_cast<int32_t>(1 + random / 4 % 64) : kSliceBudget;
}

}  // namespace

// ---- Running

inline Process::RunEnd Process::run(Env& env) {
  budget_ = slice_budget(*system_);
  unspent_ = 0;
  drain(*slot_);
  for (;;) {
    if (exiting_) return exit_step(env);
    if (budget_ <= 0) return RunEnd::more;
    if (driver_.active()) {
      if (!driver_.can_run()) {
        if (!wait_over()) {
          if (exiting_) continue;
          return RunEnd::idle;
        }
        driver_.resume_top();
      }
      uint32_t left;
      {
        UserScope user(env);
        left = driver_.run(kResumesMax);
      }
      if (driver_.can_run()) {
        if (left == 0) return RunEnd::more;
      } else if (!driver_.active()) {
        if (!exiting_) on_coroutine_done();
      } else if (waits_for_letter() && budget_ > 0 && !exiting_) {
        return RunEnd::idle;
      }
      continue;
    }
    if (may_have_urgent_work_ && has_urgent_work()) {
      on_urgent_work();
      continue;
    }
    if (queue_first_ != nullptr) {
      // A question of sys leaves the idle timeout as it is.
      if (wait_ == Wait::message && queue_first_->kind != LetterKind::system) abandon_wait();
      budget_ -= kMessageCost;
      on_message(pop_message());
      continue;
    }
    if (wait_ == Wait::message && timed_out_) {
      abandon_wait();
      on_idle_timeout();
      continue;
    }
    return RunEnd::idle;
  }
}

void SystemImpl::run_slot(Env& env, uint32_t index) {
  Slot& slot = slots_[index];
  if (env.core != nullptr && slot.core.load(relaxed) != env.core->index + 1) {
    slot.core.store(env.core->index + 1, relaxed);
  }
  uint32_t undertaken = 0;
  for (;;) {
    if (Process* process = slot.body; process != nullptr) {
      env.process = process;
      Process::RunEnd end = process->run(env);
      env.process = nullptr;
      if (Core* core = env.core; core != nullptr) [[likely]] {
        const int32_t work = kSliceBudget - process->budget_ - process->unspent_;
        core->work.store(core->work.load(relaxed) + static_cast<uint32_t>(work + kSliceCost),
                         relaxed);
      }
      // What was handled since the last drain is no backlog; a sender that waits for room would
      // wait for ever.
      if (process->mailbox_limit() != nullptr) {
        slot.backlog.store(process->queue_length(), relaxed);
      }
      if (end == Process::RunEnd::more) return schedule_tail(index);
      if (end == Process::RunEnd::idle) break;
      bury(slot, index);
    }
    while (slot.body == nullptr) {
      Letter* letter = slot.next_letter();
      if (letter == nullptr || ++undertaken > kLettersPerUndertaking) break;
      if (letter->kind == LetterKind::start) {
        give_birth(slot, letter);
        env.process = slot.body;
        slot.body->on_start();
        env.process = nullptr;
      } else {
        undertake(letter, index);
        destroy_letter_payload(letter);
        letter->flags |= kConsumed;  // it is the anchor: freed when passed
      }
    }
    if (slot.body == nullptr) break;
  }
  if (!slot.try_sleep()) schedule_tail(index);
}

// Phase one: no frame may go while an operation still uses its memory. Phase two: frames, state,
// signals.
Process::RunEnd Process::exit_step(Env& env) {
  if (operations_ != nullptr) {
    if (!cancelled_) {
      cancelled_ = true;
      for (PendingOperation* each = operations_; each != nullptr;) {
        PendingOperation* next = each->next;
        each->cancel();
        each = next;
      }
    }
    return RunEnd::idle;  // each one's wake letter brings us back here
  }
  {
    UserScope user(env);
    driver_.destroy();
    root_ = Async<void>();
  }
  on_exit();
  return RunEnd::ended;
}

void Process::exit_with(ExitReason reason) {
  if (exiting_) return;
  exiting_ = true;
  exit_reason_ = std::move(reason);
}

void Process::start_coroutine(Async<void> root) {
  root_ = std::move(root);
  root_.start(driver_);
}

std::exception_ptr Process::take_coroutine_exception() {
  Async<void> root = std::move(root_);
  return root.take_exception();
}

uint64_t Process::new_reference() { return system_->new_reference(); }

// ---- The queue

Letter* Process::scan(Receiver& receiver) {
  if (queue_first_ == nullptr || scanned_ == queue_last_) return nullptr;
  Letter* previous = scanned_;
  Letter* letter = previous == nullptr ? queue_first_ : previous->next.load(relaxed);
  for (;;) {
    if (receiver.accepts(*letter)) {
      unlink_message(previous, letter);
      return letter;
    }
    scanned_ = letter;
    if (letter == queue_last_) return nullptr;
    previous = letter;
    letter = letter->next.load(relaxed);
  }
}

// ---- Draining

// What was pushed before this call is looked at, even if a sender before it is between its two
// steps (S4): its thread links its letter within two instructions, or in its next turn.
bool Process::drain_now() {
  // acquire: as in next_letter. The letter stays until it is passed, so its address is its own.
  Letter* const last = slot_->head.load(acquire);
  for (bool passed = last == slot_->anchor;;) {
    while (Letter* letter = slot_->next_letter()) {
      passed = passed || letter == last;
      take_letter(*slot_, letter);
    }
    if (passed) break;
    std::this_thread::yield();
  }
  slot_->backlog.store(queue_length_, relaxed);  // a hint for senders
  return !exiting_;
}

inline void Process::take_letter(Slot& slot, Letter* letter) {
  if (letter->generation != static_cast<uint32_t>(id_ >> 32)) [[unlikely]] {
    answer_letter(letter, ExitReason::noproc());  // for an older tenant of this slot (S7)
    return consume(letter);
  }
  if (letter->kind == LetterKind::message || letter->kind == LetterKind::call ||
      letter->kind == LetterKind::cast || letter->kind == LetterKind::system) [[likely]] {
    if (exiting_) [[unlikely]] {
      answer_letter(letter, exit_reason_);
      return consume(letter);
    }
    if (limits_ != nullptr && queue_length_ >= limits_->limit.letters_max &&
        letter->kind != LetterKind::system) [[unlikely]] {
      return refuse(letter);
    }
    return append(letter);
  }
  take_signal(slot, letter);
}

void Process::drain(Slot& slot) {
  while (Letter* letter = slot.next_letter()) take_letter(slot, letter);
  slot.backlog.store(queue_length_, relaxed);  // a hint for senders
}

void Process::limit_mailbox(const MailboxLimit& limit) {
  if (limit.letters_max == 0) return;
  limits_ = std::make_unique<Limits>(Limits{limit});
}

// The mailbox is full. Said at the first message and then at every doubling, not each time.
void Process::refuse(Letter* letter) {
  const uint64_t dropped = ++limits_->dropped;
  const ExitReason full = ExitReason::tagged("mailbox_full", Term(pid()));
  if (std::has_single_bit(dropped)) {
    std::string text(label());
    text += " " + pid().to_string() + ": its mailbox is full (" +
            std::to_string(limits_->limit.letters_max) + " messages), " + std::to_string(dropped) +
            " refused so far";
    log_runtime(system_->log(), LogLevel::warning, std::move(text));
  }
  if (limits_->limit.on_full != OnFull::drop_newest) answer_letter(letter, full);
  if (limits_->limit.on_full == OnFull::exit) {
    report_crash(*this, full, nullptr);
    exit_with(full);
  }
  consume(letter);
}

void Process::take_signal(Slot&, Letter* letter) {
  switch (letter->kind) {
    case LetterKind::reply: return take_reply_letter(letter);
    case LetterKind::result: return take_result(letter);
    case LetterKind::exit: return take_exit(letter);
    case LetterKind::link_exit: return take_link_exit(letter);
    case LetterKind::down: return take_down(letter);
    case LetterKind::timer: return take_timer(letter);
    case LetterKind::wake: return take_wake(letter);
    case LetterKind::link:
      if (letter->sender == parent_ && parent_linked_) break;
      relations().links.insert(letter->sender).first->unlinking = 0;
      break;
    case LetterKind::unlink: {
      if (letter->sender == parent_ && parent_linked_) {
        parent_linked_ = false;
      } else if (relations_ != nullptr) {
        // Ours may be waiting for an acknowledgement of its own: then both ends let go at once.
        auto* entry = relations_->links.find(letter->sender);
        if (entry != nullptr && entry->active()) relations_->links.erase(letter->sender);
      }
      Letter* ack = make_signal(LetterKind::unlink_ack);
      ack->sender = id_;
      ack->reference = letter->reference;
      system_->deliver(letter->sender, ack);
      break;
    }
    case LetterKind::unlink_ack: {
      auto* entry = relations_ == nullptr ? nullptr : relations_->links.find(letter->sender);
      if (entry != nullptr && entry->unlinking == letter->reference) {
        relations_->links.erase(letter->sender);
      }
      break;
    }
    case LetterKind::monitor: watch(letter->reference, letter->sender, letter->flags); break;
    case LetterKind::demonitor: unwatch(letter->reference); break;
    case LetterKind::aliased: return take_aliased(letter);
    case LetterKind::info: take_info(letter); break;
    default:
      OTP_CHECK(false, "letter of kind %d in the inbox of %s", static_cast<int>(letter->kind),
                pid().to_string().c_str());
  }
  consume(letter);
}

void Process::take_exit(Letter* letter) {
  const ExitReason& reason = letter->as<ExitReason>();
  if (reason.is_kill()) {
    exit_with(ExitReason::killed());
  } else if (trap_exit_ && !exiting_) {
    return append(letter);  // becomes an EXIT message at this place of the queue
  } else if (!reason.is_normal() || letter->sender == id_) {
    exit_with(reason);
  }
  consume(letter);
}

void Process::take_link_exit(Letter* letter) {
  bool quiet = false;
  if (letter->sender == parent_ && parent_linked_) {
    parent_linked_ = false;
  } else {
    auto* entry = relations_ == nullptr ? nullptr : relations_->links.find(letter->sender);
    if (entry == nullptr || !entry->active()) return consume(letter);  // unlinked meanwhile
    quiet = entry->unlinking == Relations::Link::kQuiet;
    relations_->links.erase(letter->sender);
  }
  if (trap_exit_ && !exiting_) return quiet ? consume(letter) : append(letter);
  const ExitReason& reason = letter->as<ExitReason>();
  if (!reason.is_normal()) exit_with(reason);
  consume(letter);
}

void Process::take_down(Letter* letter) {
  auto* entry = relations_ == nullptr ? nullptr : relations_->monitors.find(letter->reference);
  if (entry == nullptr) return consume(letter);
  ResultSink* sink = entry->sink;
  relations_->monitors.erase(letter->reference);
  if (exiting_) return consume(letter);
  if (sink != nullptr) return sink->take(letter);
  end_monitor_alias(letter->reference);
  append(relations_->tags == nullptr ? letter : with_tag(letter));
}

// Nothing else will come of the process that sent it: the link goes too, without an EXIT message.
void Process::take_result(Letter* letter) {
  if (relations_ == nullptr) return consume(letter);
  forget_link(letter->sender);
  auto* entry = relations_->monitors.find(letter->reference);
  if (entry == nullptr) return consume(letter);  // demonitored: nobody wants it
  ResultSink* sink = entry->sink;
  relations_->monitors.erase(letter->reference);
  if (exiting_) return consume(letter);
  if (sink != nullptr) return sink->take(letter);
  letter->kind = LetterKind::message;
  append(letter);
}

void Process::take_reply_letter(Letter* letter) {
  if (letter->reference == wait_reference_ && reply_ == nullptr && !timed_out_) [[likely]] {
    reply_ = letter;
    return;
  }
  if (relations_ != nullptr && !exiting_) {
    auto* entry = relations_->aliases.find(letter->reference);
    if (entry != nullptr && (entry->flags & kForResponse)) {
      relations_->aliases.erase(letter->reference);
      return append(letter);
    }
  }
  consume(letter);  // late: the caller has given up
}

void Process::take_timer(Letter* letter) {
  if (letter->reference == static_cast<uint64_t>(timer_due_) && timer_ != 0) {
    timer_ = 0;
    timer_due_ = TimerWheel::kNever;
    if (wait_ != Wait::none && deadline_ != TimerWheel::kNever) {
      if (system_->now() >= deadline_) {
        timed_out_ = true;
      } else {
        arm_wait(deadline_);  // it was armed for an earlier wait
      }
    }
  }
  consume(letter);
}

void Process::take_wake(Letter* letter) {
  if (letter->reference == kSayWhatHolds) [[unlikely]] {
    system_->hear_what_holds(*this);
    return consume(letter);
  }
  for (PendingOperation* each = operations_; each != nullptr; each = each->next) {
    if (each->reference != letter->reference) continue;
    each->done = true;
    remove_operation(*each);
    break;
  }
  if (wait_reference_ == letter->reference && reply_ == nullptr && !exiting_) {
    reply_ = letter;
    return;
  }
  consume(letter);
}

// ---- Waiting

void Process::arm_wait(int64_t deadline) {
  if (timer_ != 0) system_->cancel_timer(timer_core_, timer_);
  Letter* letter = make_signal(LetterKind::timer);
  letter->reference = static_cast<uint64_t>(deadline);
  timer_due_ = deadline;
  timer_ = system_->arm_timer(deadline, id_, letter, &timer_core_);
}

void Process::drop_timer() noexcept {
  system_->cancel_timer(timer_core_, timer_);
  timer_ = 0;
  timer_due_ = TimerWheel::kNever;
}

bool Process::wait_over() {
  switch (wait_) {
    case Wait::none: return false;
    case Wait::yield: return true;
    case Wait::reply: return reply_ != nullptr || timed_out_;
    case Wait::operation: return reply_ != nullptr || (timed_out_ && !cancel_waited());
    case Wait::sleep: return timed_out_;
    case Wait::receive: return receive_over();
    case Wait::message: return false;
    case Wait::condition: return condition_->holds();
  }
  return false;
}

bool Process::receive_over() {
  try {
    received_ = scan(*receiver_);
    if (received_ == nullptr && timed_out_) {  // not without a look at all that is there
      if (!drain_now()) return false;
      received_ = scan(*receiver_);
    }
  } catch (...) {  // of a predicate: its process is told, where it waits
    receiver_->fail(std::current_exception());
    return true;
  }
  return received_ != nullptr || timed_out_;
}

// The time for the operation that is waited for is over. Its memory is in the waiting frame, which
// therefore stays until it has answered. False: it is none of the pending ones.
bool Process::cancel_waited() {
  for (PendingOperation* each = operations_; each != nullptr; each = each->next) {
    if (each->reference != wait_reference_) continue;
    timed_out_ = false;
    deadline_ = TimerWheel::kNever;
    each->cancel();
    return true;
  }
  return false;
}

void Process::add_operation(PendingOperation& operation) {
  operation.previous = nullptr;
  operation.next = operations_;
  if (operations_ != nullptr) operations_->previous = &operation;
  operations_ = &operation;
}

void Process::remove_operation(PendingOperation& operation) {
  if (operation.previous != nullptr) operation.previous->next = operation.next;
  if (operation.next != nullptr) operation.next->previous = operation.previous;
  if (operations_ == &operation) operations_ = operation.next;
}

// ---- The end

// Answers a letter that this process will never handle, with `reason` for whoever waits for an
// answer.
void Process::answer_letter(Letter* letter, const ExitReason& reason) {
  Letter* answer = nullptr;
  switch (letter->kind) {
    case LetterKind::info: {
      answer = make_signal(LetterKind::reply, ExitReason::noproc());
      answer->flags |= kFailed;
      break;
    }
    case LetterKind::call:
    case LetterKind::system:
      answer = make_signal(LetterKind::reply, reason);
      answer->flags |= kFailed;
      break;
    case LetterKind::monitor: answer = make_signal(LetterKind::down, reason); break;
    case LetterKind::link: answer = make_signal(LetterKind::link_exit, reason); break;
    case LetterKind::unlink: answer = make_signal(LetterKind::unlink_ack); break;
    default: return;
  }
  answer->sender =
      Pid{0, (static_cast<uint64_t>(letter->generation) << 32) | Pid{0, id_}.slot()}.id;
  answer->reference = letter->reference;
  answer->flags |= letter->flags & kByName;
  system_->deliver(letter->sender, answer);
}

// Tells everybody who is tied to this process. The slot is dead and the name is free by now.
void Process::announce_exit() {
  if (timer_ != 0) system_->cancel_timer(timer_core_, timer_);
  if (reply_ != nullptr) consume(std::exchange(reply_, nullptr));
  if (received_ != nullptr) consume(std::exchange(received_, nullptr));
  while (Letter* letter = pop_message()) {
    answer_letter(letter, exit_reason_);
    consume(letter);
  }
  if (wait_target_ != 0) {  // our call is still open: its server may be watching us
    send_demonitor(wait_target_, wait_reference_);
  }
  if (parent_linked_) announce_link_exit(parent_);
  if (relations_ != nullptr) announce_to_relations();
  answer_waiting();  // after the exit signals: a failed start ends a linked starter that does not
                     // trap
}

void Process::announce_link_exit(uint64_t peer) {
  Letter* letter = make_signal(LetterKind::link_exit, exit_reason_);
  letter->sender = id_;
  system_->deliver(peer, letter);
}

void Process::announce_to_relations() {
  relations_->links.for_each([&](uint64_t peer, Relations::Link& link) {
    if (link.active()) announce_link_exit(peer);
  });
  relations_->watchers.for_each([&](uint64_t reference, Relations::Watcher& watcher) {
    // A caller that waits for its answer gets a failed one, a monitor its DOWN.
    auto kind = watcher.flags & kFailed ? LetterKind::reply : LetterKind::down;
    Letter* letter = make_signal(kind, exit_reason_);
    letter->sender = id_;
    letter->reference = reference;
    letter->flags |= watcher.flags;
    system_->deliver(watcher.watcher, letter);
  });
  relations_->monitors.for_each([&](uint64_t reference, Relations::Monitor& monitor) {
    send_demonitor(monitor.target, reference);
  });
}

}  // namespace otp::internal
