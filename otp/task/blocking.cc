#include "otp/task/blocking.h"

namespace otp::internal {

// On a thread of the lane, or inline in a simulation. The System is alive: it ends the lane before
// it ends itself, and a caller that is gone by now is answered by its slot, which drops the letter.
void BlockingWork::run() noexcept {
  OutsideScope outside(*system_);
  Letter* letter = answer();
  letter->reference = reference_;
  system_->deliver(caller_, letter);
}

bool BlockingBase::suspend() {
  LibraryScope scope(env());
  Process& process = self_process();
  SystemImpl& system = process.system();
  auto& work = static_cast<BlockingWork&>(*work_);
  work.system_ = &system;
  work.caller_ = process.id();
  work.reference_ = system.new_reference();
  process.expect_reply(work.reference_, 0);
  process.begin_wait(Process::Wait::reply, TimerWheel::kNever);
  if (system.simulated()) {
    work.run();
    work_.reset();
    return true;
  }
  if (system.blocking().submit(work_)) return true;
  process.abandon_wait();
  return false;
}

Letter* BlockingBase::finish() {
  if (work_ != nullptr) return nullptr;  // the lane did not take it
  LibraryScope scope(env());
  Process& process = self_process();
  Letter* letter = process.take_reply();
  process.abandon_wait();
  return letter;
}

}  // namespace otp::internal
