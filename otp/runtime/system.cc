#include "otp/runtime/system.h"

namespace otp {

System::System(SystemOptions options, bool simulated)
    : impl_(std::make_unique<internal::SystemImpl>(std::move(options), simulated)) {
  if (!simulated) impl_->start_threads();
}

void System::shut_down() {
  if (impl_ == nullptr) return;
  impl_->terminate();
  impl_.reset();
}

void System::wait_until(OutcomeBase& outcome) {
  std::unique_lock lock(outcome.mutex);
  outcome.changed.wait(lock, [&] { return outcome.finished; });
}

}  // namespace otp
