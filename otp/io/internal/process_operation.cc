#include "otp/io/internal/process_operation.h"

#include "otp/runtime/core.h"

namespace otp::io::internal {

using namespace otp::internal;

void ProcessOperation::enlist() {
  Process& process = self_process();
  system_ = &process.system();
  pid_ = process.id();
  reference = process.new_reference();
  process.expect_reply(reference, 0);
  process.add_operation(*this);
}

void ProcessOperation::wait(int64_t deadline) {
  self_process().begin_wait(Process::Wait::operation, deadline);
}

void ProcessOperation::finish() {
  Process& process = self_process();
  if (Letter* letter = process.take_reply()) process.consume(letter);
  process.abandon_wait();
}

void ProcessOperation::cancel() noexcept {
  if (cancel_requested_) return;
  cancel_requested_ = true;
  request_cancel();
}

void ProcessOperation::complete() noexcept {
  Letter* letter = make_signal(LetterKind::wake);
  letter->reference = reference;
  // After the delivery the process may run, and this object be gone.
  SystemImpl& system = *system_;
  const uint64_t pid = pid_;
  if (current_env != nullptr && current_env->system == &system) {
    LibraryScope scope(*current_env);
    system.deliver(pid, letter);
  } else {
    OutsideScope outside(system);
    system.deliver(pid, letter);
  }
}

void ProcessOperation::complete_at(int64_t time) {
  Letter* letter = make_signal(LetterKind::wake);
  letter->reference = reference;
  auto arm = [&] { timer_ = system_->arm_timer(time, pid_, letter, &timer_core_); };
  if (current_env != nullptr && current_env->system == system_) {
    LibraryScope scope(*current_env);
    arm();
  } else {
    OutsideScope outside(*system_);
    arm();
  }
}

bool ProcessOperation::take_back() {
  if (timer_ == 0) return false;
  return system_->cancel_timer(timer_core_, std::exchange(timer_, 0)) != TimerWheel::kNever;
}

}  // namespace otp::io::internal
