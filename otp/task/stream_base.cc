#include "otp/task/stream_base.h"

#include <stdexcept>
#include <string>

namespace otp::internal {

namespace {

constexpr int kNextCost = 4;

int64_t checked_concurrency(const AsyncStreamOptions& options, const SystemImpl& system) {
  if (!options.max_concurrency) return system.core_count();
  if (*options.max_concurrency < 1) {
    throw std::invalid_argument("async_stream: expected max_concurrency of at least 1, got " +
                                std::to_string(*options.max_concurrency));
  }
  return *options.max_concurrency;
}

}  // namespace

StreamBase::StreamBase(const AsyncStreamOptions& options, bool waits)
    : options_(options),
      owner_(self_process()),
      concurrency_(checked_concurrency(options_, owner_.system())),
      waits_(waits) {}

StreamBase::~StreamBase() {
  OTP_CHECK(&self_process() == &owner_, "an async_stream of %s was destroyed by %s",
            owner_.pid().to_string().c_str(), self_process().pid().to_string().c_str());
  LibraryScope scope(env());
  end_all();
  while (all_ != nullptr) {
    Slot* slot = std::exchange(all_, all_->next_of_all);
    if (slot->state != State::free) owner_.demonitor(slot->reference);
    delete slot;
  }
}

void StreamBase::refuse_stranger() const {
  throw std::invalid_argument("async_stream: expected a call by its owner " +
                              owner_.pid().to_string() + ", got one by " + self().to_string());
}

// ---- Slots

StreamBase::Slot* StreamBase::take_slot() {
  Slot* slot = free_;
  if (slot != nullptr) {
    free_ = slot->next;
    slot->next = nullptr;
  } else {
    slot = new Slot(*this);
    slot->next_of_all = all_;
    all_ = slot;
  }
  ++occupied_;
  return slot;
}

void StreamBase::free_slot(Slot& slot) {
  slot.state = State::free;
  if (zips_input()) slot.input = Term();
  slot.next = free_;
  free_ = &slot;
  --occupied_;
}

void StreamBase::append_order(Slot& slot) {
  slot.next = nullptr;
  (order_first_ == nullptr ? order_first_ : order_last_->next) = &slot;
  order_last_ = &slot;
}

void StreamBase::append_running(Slot& slot) {
  slot.running_next = nullptr;
  slot.running_previous = running_last_;
  (running_last_ == nullptr ? running_first_ : running_last_->running_next) = &slot;
  running_last_ = &slot;
  if (unstamped_ == nullptr) unstamped_ = &slot;
}

void StreamBase::remove_running(Slot& slot) {
  if (unstamped_ == &slot) unstamped_ = slot.running_next;
  (slot.running_previous == nullptr ? running_first_ : slot.running_previous->running_next) =
      slot.running_next;
  (slot.running_next == nullptr ? running_last_ : slot.running_next->running_previous) =
      slot.running_previous;
}

Pid StreamBase::launch(std::unique_ptr<TaskProcess> body, Term* input) {
  Slot* slot = take_slot();
  try {
    Spawned spawned = spawn_task(std::move(body), {.link = true, .quiet = true, .sink = slot});
    slot->pid = spawned.pid.id;
    slot->reference = spawned.monitor.id;
  } catch (...) {
    free_slot(*slot);
    throw;
  }
  slot->state = State::running;
  if (input != nullptr) slot->input = std::move(*input);
  append_running(*slot);
  launched_ = true;
  if (options_.ordered) append_order(*slot);
  return Pid{0, slot->pid};
}

// What the slot's monitor brings, while the consumer's inbox is drained.
void StreamBase::arrived(Slot& slot, Letter* letter) noexcept {
  if (slot.state == State::running) {
    slot.letter = letter;
    slot.state = State::done;
    remove_running(slot);
    if (!options_.ordered) append_order(slot);
    return;
  }
  owner_.consume(letter);
  if (slot.state == State::expired) {
    slot.state = State::gone;  // its timeout is still to be delivered
  } else {
    free_slot(slot);
  }
}

Letter* StreamBase::take_result(Slot& slot) {
  LibraryScope scope(env());
  order_first_ = slot.next;
  if (order_first_ == nullptr) order_last_ = nullptr;
  if (slot.letter == nullptr || slot.letter->kind == LetterKind::down) return nullptr;
  Letter* letter = std::exchange(slot.letter, nullptr);
  free_slot(slot);
  return letter;
}

ExitReason StreamBase::take_reason(Slot& slot) {
  LibraryScope scope(env());
  ExitReason reason = ExitReason::timeout();
  if (Letter* letter = std::exchange(slot.letter, nullptr)) {
    reason = std::move(letter->as<ExitReason>());
    owner_.consume(letter);
  }
  if (options_.zip_input_on_exit) {
    reason = ExitReason(Term::tuple({std::move(slot.input), reason.term()}));
  }
  if (slot.state == State::expired) {
    slot.state = State::dying;  // freed when it is gone
  } else {
    free_slot(slot);
  }
  return reason;
}

// ---- Waiting

// True: next() has an answer now.
bool StreamBase::over() const {
  if (ending_) return occupied_ == 0;
  if (is_ready()) return true;
  return exhausted_ ? occupied_ == 0 : waits_ && wants_more();
}

bool StreamBase::ready() {
  if (wants_more() && !waits_) fill();
  LibraryScope scope(env());
  return owner_.charge(kNextCost) && over();
}

void StreamBase::stamp() {
  if (unstamped_ == nullptr || options_.timeout.is_infinite()) return;
  LibraryScope scope(env());
  int64_t deadline = owner_.system().core_deadline_after(options_.timeout);
  for (; unstamped_ != nullptr; unstamped_ = unstamped_->running_next) {
    unstamped_->deadline = deadline;
  }
}

void StreamBase::suspend() {
  LibraryScope scope(env());
  // Those just started get their turn before us, so that their results come together: one wait for
  // a hundred results instead of a hundred waits.
  if (std::exchange(launched_, false)) owner_.end_slice();
  stamp();
  bool limited = running_first_ != nullptr && !options_.timeout.is_infinite() && !ending_;
  owner_.set_condition(this);
  owner_.begin_wait(Process::Wait::condition,
                    limited ? running_first_->deadline : TimerWheel::kNever);
}

bool StreamBase::holds() {
  bool again = false;
  if (owner_.timed_out()) {
    again = true;
    if (!ending_) expire();
  }
  if (!waits_ && wants_more()) {  // a task that had to be killed is gone at last
    again = true;
    UserScope user(env());
    fill();
  }
  if (over()) return true;
  if (again) suspend();
  return false;
}

void StreamBase::resumed() {
  LibraryScope scope(env());
  owner_.abandon_wait();
}

// ---- Ending tasks

void StreamBase::expire() {
  int64_t now = owner_.system().now();
  while (running_first_ != nullptr && running_first_ != unstamped_ &&
         running_first_->deadline <= now) {
    if (options_.on_timeout == OnTimeout::exit) {
      Term limit(options_.timeout.nanoseconds() / 1'000'000);
      Term description = Term::tuple(
          {Term::literal("task"), Term::literal("async_stream"), Term::list({std::move(limit)})});
      fail(std::make_exception_ptr(
          Exit(ExitReason(Term::tuple({Term::literal("timeout"), std::move(description)})))));
      return;
    }
    Slot& slot = *running_first_;
    kill(slot);
    slot.state = State::expired;
    if (!options_.ordered) append_order(slot);
  }
}

// The link goes first, and without asking: what the task's end would do to us is nothing now.
void StreamBase::kill(Slot& slot) {
  remove_running(slot);
  owner_.forget_link(slot.pid);
  Letter* letter = make_signal(LetterKind::exit, ExitReason::kill());
  letter->sender = owner_.id();
  owner_.system().deliver(slot.pid, letter);
}

void StreamBase::end_all() {
  exhausted_ = true;
  while (order_first_ != nullptr) {
    Slot& slot = *std::exchange(order_first_, order_first_->next);
    if (slot.state == State::done) {
      owner_.consume(std::exchange(slot.letter, nullptr));
      free_slot(slot);
    } else if (slot.state == State::gone) {
      free_slot(slot);
    } else if (slot.state == State::expired) {
      slot.state = State::dying;
    }
  }
  order_last_ = nullptr;
  while (running_first_ != nullptr) {
    Slot& slot = *running_first_;
    kill(slot);
    slot.state = State::dying;
  }
}

void StreamBase::fail(std::exception_ptr thrown) {
  if (ending_) return;
  LibraryScope scope(env());
  ending_ = true;
  thrown_ = std::move(thrown);
  end_all();
}

Async<void> StreamBase::close() {
  require_owner();
  fail(nullptr);
  thrown_ = nullptr;
  Wait gone(*this);
  co_await gone;
}

}  // namespace otp::internal
