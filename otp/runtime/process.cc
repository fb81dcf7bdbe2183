#include "otp/runtime/process.h"

#include <bit>
#include <string>

#include "otp/runtime/core.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime_log.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {
constexpr int32_t kSliceBudget = 1024;  // units of work before others get their turn
constexpr int32_t kMessageCost = 4;
constexpr uint32_t kResumesMax = 4096;  // frames resumed in one slice
}  // namespace

Process::~Process() = default;

// ---- Running
// ------------------------------------------------------------------------------------------

Process::RunEnd Process::run(Env& env) {
  budget_ = kSliceBudget;
  drain(*slot_);
  for (;;) {
    if (exiting_) return exit_step(env);
    if (budget_ <= 0) return RunEnd::more;
    if (driver_.active()) {
      if (!driver_.can_run()) {
        if (!wait_over()) return RunEnd::idle;
        driver_.resume_top();
      }
      uint32_t left;
      {
        UserScope user(env);
        left = driver_.run(kResumesMax);
      }
      if (left == 0 && driver_.can_run()) return RunEnd::more;
      if (!driver_.active() && !exiting_) on_coroutine_done();
      continue;
    }
    if (has_urgent_work()) {
      on_urgent_work();
      continue;
    }
    if (queue_first_ != nullptr) {
      if (wait_ == Wait::message) abandon_wait();
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
  try {
    root.take();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

uint64_t Process::new_reference() { return system_->new_reference(); }

// ---- The queue
// ----------------------------------------------------------------------------------------

void Process::consume(Letter* letter) {
  // The anchor's `next` still belongs to senders: it is freed when it is passed (S3).
  if (letter == slot_->anchor) {
    destroy_letter_payload(letter);
    letter->flags |= kConsumed;
  } else {
    free_letter(letter);
  }
}

void Process::append(Letter* letter) {
  if (queue_first_ == nullptr) {
    queue_first_ = letter;
  } else {
    queue_last_->next.store(letter, relaxed);  // queue_last_ was passed: its next is ours (P2)
  }
  queue_last_ = letter;
  ++queue_length_;
}

Letter* Process::pop_message() {
  Letter* letter = queue_first_;
  if (letter != nullptr) unlink_message(nullptr, letter);
  return letter;
}

void Process::unlink_message(Letter* previous, Letter* letter) {
  // acquire is not needed: everything up to queue_last_ was drained by this holder (P2).
  Letter* next = letter == queue_last_ ? nullptr : letter->next.load(relaxed);
  if (previous == nullptr) {
    queue_first_ = next;
  } else if (next != nullptr) {
    previous->next.store(next, relaxed);
  }
  if (letter == queue_last_) queue_last_ = previous;
  if (scanned_ == letter) scanned_ = previous;
  --queue_length_;
}

Letter* Process::scan(Receiver& receiver, bool fresh) {
  if (fresh) scanned_ = nullptr;
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
// -----------------------------------------------------------------------------------------

void Process::drain(Slot& slot) {
  while (Letter* letter = slot.next_letter()) take_letter(slot, letter);
  slot.backlog.store(queue_length_, relaxed);  // a hint for senders
}

bool Process::drain_now() {
  drain(*slot_);
  return !exiting_;
}

void Process::take_letter(Slot& slot, Letter* letter) {
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
    report_crash(*this, full);
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
    case LetterKind::link: relations().links.insert(letter->sender).first->unlinking = 0; break;
    case LetterKind::unlink: {
      if (relations_ != nullptr) {
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
  auto* entry = relations_ == nullptr ? nullptr : relations_->links.find(letter->sender);
  if (entry == nullptr || !entry->active()) return consume(letter);  // unlinked meanwhile
  const bool quiet = entry->unlinking == Relations::Link::kQuiet;
  relations_->links.erase(letter->sender);
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
  relations_->aliases.erase(letter->reference);
  append(letter);
}

// Nothing else will come of the process that sent it: the link goes too, without an EXIT message.
void Process::take_result(Letter* letter) {
  if (relations_ == nullptr) return consume(letter);
  relations_->links.erase(letter->sender);
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
  if (relations_ != nullptr && !exiting_ && relations_->aliases.erase(letter->reference)) {
    return append(letter);
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
// ------------------------------------------------------------------------------------------

void Process::expect_reply(uint64_t reference, uint64_t target) {
  wait_reference_ = reference;
  wait_target_ = target;
  reply_ = nullptr;
}

void Process::begin_wait(Wait what, int64_t deadline) {
  wait_ = what;
  timed_out_ = false;
  deadline_ = deadline;
  if (deadline != TimerWheel::kNever && (timer_ == 0 || timer_due_ > deadline)) arm_wait(deadline);
}

void Process::arm_wait(int64_t deadline) {
  if (timer_ != 0) system_->cancel_timer(timer_core_, timer_);
  Letter* letter = make_signal(LetterKind::timer);
  letter->reference = static_cast<uint64_t>(deadline);
  timer_due_ = deadline;
  timer_ = system_->arm_timer(deadline, id_, letter, &timer_core_);
}

// The wait timer stays armed: the next wait extends it lazily instead of arming another one. In a
// simulation it goes, as virtual time would run to it for nothing.
void Process::abandon_wait() noexcept {
  wait_ = Wait::none;
  deadline_ = TimerWheel::kNever;
  timed_out_ = false;
  wait_reference_ = 0;
  wait_target_ = 0;
  receiver_ = nullptr;
  condition_ = nullptr;
  if (timer_ != 0 && system_->simulated()) {
    system_->cancel_timer(timer_core_, timer_);
    timer_ = 0;
    timer_due_ = TimerWheel::kNever;
  }
}

Letter* Process::take_reply() { return std::exchange(reply_, nullptr); }

bool Process::wait_over() {
  switch (wait_) {
    case Wait::none: return false;
    case Wait::yield: return true;
    case Wait::reply: return reply_ != nullptr || timed_out_;
    case Wait::operation: return reply_ != nullptr || (timed_out_ && !cancel_waited());
    case Wait::sleep: return timed_out_;
    case Wait::receive:
      received_ = scan(*receiver_, false);
      return received_ != nullptr || timed_out_;
    case Wait::message: return false;
    case Wait::condition: return condition_->holds();
  }
  return false;
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

// ---- Links and monitors
// -------------------------------------------------------------------------------

void Process::link(Pid other) {
  if (other.id == id_) return;
  auto [entry, fresh] = relations().links.insert(other.id);
  if (!fresh && entry->active()) return;  // at most one link a pair
  entry->unlinking = 0;
  Letter* letter = make_signal(LetterKind::link);
  letter->sender = id_;
  system_->deliver(other.id, letter);
}

void Process::unlink(Pid other) {
  auto* entry = relations_ == nullptr ? nullptr : relations_->links.find(other.id);
  if (entry == nullptr || !entry->active()) return;
  entry->unlinking = new_reference();
  Letter* letter = make_signal(LetterKind::unlink);
  letter->sender = id_;
  letter->reference = entry->unlinking;
  system_->deliver(other.id, letter);
}

uint64_t Process::monitor(Pid target, uint8_t flags) {
  uint64_t reference = new_reference();
  if (target.id == id_) return reference;  // no DOWN ever
  *relations().monitors.insert(reference).first = {target.id, nullptr};
  Letter* letter = make_signal(LetterKind::monitor);
  letter->sender = id_;
  letter->reference = reference;
  letter->flags |= flags;
  system_->deliver(target.id, letter);
  return reference;
}

bool Process::demonitor(uint64_t reference) {
  auto* entry = relations_ == nullptr ? nullptr : relations_->monitors.find(reference);
  if (entry == nullptr) return false;
  send_demonitor(entry->target, reference);
  relations_->monitors.erase(reference);
  return true;
}

void Process::send_demonitor(uint64_t target, uint64_t reference) {
  Letter* letter = make_signal(LetterKind::demonitor);
  letter->sender = id_;
  letter->reference = reference;
  system_->deliver(target, letter);
}

namespace {
struct DownOf final : Receiver {
  uint64_t reference;
  explicit DownOf(uint64_t wanted) : reference(wanted) {}
  bool accepts(Letter& letter) override {
    return letter.kind == LetterKind::down && letter.reference == reference;
  }
};
struct ExitOf final : Receiver {
  uint64_t from;
  explicit ExitOf(uint64_t wanted) : from(wanted) {}
  bool accepts(Letter& letter) override {
    return (letter.kind == LetterKind::link_exit || letter.kind == LetterKind::exit) &&
           letter.sender == from;
  }
};
}  // namespace

void Process::flush_down(uint64_t reference) {
  DownOf wanted(reference);
  if (Letter* letter = scan(wanted, true)) consume(letter);
  scanned_ = nullptr;
}

void Process::flush_exit(uint64_t from) {
  ExitOf wanted(from);
  if (Letter* letter = scan(wanted, true)) consume(letter);
  scanned_ = nullptr;
}

void Process::adopt(uint64_t child, const ChildTies& ties) {
  if (ties.linked) {
    relations().links.insert(child).first->unlinking = ties.quiet ? Relations::Link::kQuiet : 0;
  }
  if (ties.monitor != 0) *relations().monitors.insert(ties.monitor).first = {child, ties.sink};
}

void Process::watch(uint64_t reference, uint64_t watcher, uint8_t flags) {
  auto* entry = relations().watchers.insert(reference).first;
  entry->watcher = watcher;
  entry->flags = flags & (kByName | kFailed);
}

bool Process::unwatch(uint64_t reference) {
  return relations_ != nullptr && relations_->watchers.erase(reference);
}

// ---- The end
// ------------------------------------------------------------------------------------------

// Answers a letter that this process will never handle, with `reason` for whoever waits for an
// answer.
void Process::answer_letter(Letter* letter, const ExitReason& reason) {
  Letter* answer = nullptr;
  switch (letter->kind) {
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
  if (relations_ != nullptr) announce_to_relations();
  answer_waiting();  // after the exit signals: a failed start ends a linked starter that does not
                     // trap
}

void Process::announce_to_relations() {
  relations_->links.for_each([&](uint64_t peer, Relations::Link& link) {
    if (!link.active()) return;
    Letter* letter = make_signal(LetterKind::link_exit, exit_reason_);
    letter->sender = id_;
    system_->deliver(peer, letter);
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
