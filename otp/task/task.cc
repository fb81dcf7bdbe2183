#include "otp/task/task.h"

#include <stdexcept>
#include <string>

namespace otp::internal {

namespace {

bool is_last_letter(const Letter& letter, uint64_t reference) {
  return letter.reference == reference &&
         (letter.kind == LetterKind::message || letter.kind == LetterKind::down);
}

Letter* take_last_letter(Process& process, uint64_t reference) {
  return process.take_matching(
      [reference](const Letter& letter) { return is_last_letter(letter, reference); });
}

}  // namespace

// ---- The handle

void TaskBase::take_over(TaskBase& other) noexcept {
  pid_ = other.pid_;
  reference_ = other.reference_;
  owner_ = other.owner_;
  linked_ = other.linked_;
  state_ = std::exchange(other.state_, State::spent);
}

TaskBase& TaskBase::operator=(TaskBase&& other) noexcept {
  if (this == &other) return *this;
  if (state_ == State::running) forget();
  take_over(other);
  return *this;
}

void TaskBase::require_owner(const char* what) const {
  if (self() != owner_) {
    throw std::invalid_argument("task.h: " + std::string(what) + " of the task " +
                                reference_.to_string() + " must be called by its owner " +
                                owner_.to_string() + ", but was by " + self().to_string());
  }
  if (state_ == State::spent) {
    throw std::invalid_argument("task.h: " + std::string(what) + " of the task " +
                                reference_.to_string() + ", whose outcome was taken already");
  }
}

void TaskBase::forget() noexcept {
  state_ = State::spent;
  if (current_env == nullptr || current_env->process == nullptr) return;
  LibraryScope scope(env());
  Process& process = self_process();
  if (process.id() != owner_.id || process.exiting()) return;
  if (process.demonitor(reference_.id)) return;  // what comes now is dropped when it is drained
  if (Letter* letter = take_last_letter(process, reference_.id)) process.consume(letter);
}

void TaskBase::unlink_quietly() {
  if (!linked_) return;
  LibraryScope scope(env());
  Process& process = self_process();
  process.unlink(pid_);
  process.flush_exit(pid_.id);
}

Letter* TaskBase::look() {
  LibraryScope scope(env());
  Process& process = self_process();
  if (!process.drain_now()) return nullptr;
  return take_last_letter(process, reference_.id);
}

ExitReason TaskBase::reason_of_down(Letter* down) {
  state_ = State::spent;
  LibraryScope scope(env());
  Process& process = self_process();
  ExitReason reason = std::move(down->as<ExitReason>());
  process.consume(down);
  // The EXIT of the same end was sent before the DOWN.
  if (linked_ && process.trap_exit()) process.flush_exit(pid_.id);
  return reason;
}

Async<Letter*> TaskBase::end(Shutdown how) {
  Letter* letter = look();
  unlink_quietly();
  if (letter != nullptr) co_return letter;
  otp::exit(pid_, how.is_brutal_kill() ? ExitReason::kill() : ExitReason::shutdown());
  const char* asked = how.is_brutal_kill() ? "killed" : "shutdown";
  TaskWait told(*this, how.is_brutal_kill() ? infinity : how.timeout(), "shutdown");
  letter = co_await told;
  if (letter == nullptr) {
    otp::exit(pid_, ExitReason::kill());
    TaskWait killed(*this, infinity, "shutdown");
    letter = co_await killed;
  }
  if (letter->kind == LetterKind::down && letter->as<ExitReason>().is(asked)) {
    reason_of_down(letter);
    co_return nullptr;
  }
  co_return letter;
}

// ---- Waiting

bool TaskWait::accepts(Letter& letter) { return is_last_letter(letter, task_.reference_.id); }

void TaskWait::give_up(ExitReason reason) {
  Term timeout =
      timeout_.is_infinite() ? Term::literal("infinity") : Term(timeout_.nanoseconds() / 1'000'000);
  Term description = Term::tuple({Term::literal("task"), Term::literal(what_),
                                  Term::list({Term(task_.reference_), std::move(timeout)})});
  throw Exit(ExitReason(Term::tuple({reason.term(), std::move(description)})));
}

Deadline::Deadline(Timeout timeout) : at_(TimerWheel::kNever) {
  if (timeout.is_infinite()) return;
  int64_t now = env().system->now();
  if (timeout.nanoseconds() < TimerWheel::kNever - now) at_ = now + timeout.nanoseconds();
}

Timeout Deadline::left() const {
  if (at_ == TimerWheel::kNever) return infinity;
  return Duration(at_ - env().system->now());
}

}  // namespace otp::internal
