#include "otp/runtime/system.h"

namespace otp {

System::System(SystemOptions options, bool simulated)
    : impl_(std::make_unique<internal::SystemImpl>(std::move(options), simulated)) {
  if (!simulated) impl_->start_threads();
}

void System::shut_down() {
  if (impl_ == nullptr) return;
  impl_->terminate();
  const SystemOptions options = impl_->options();
  const bool simulated = impl_->simulated();
  impl_.reset();
  // On threads the memory that others have at hand cannot be counted; the sanitizers see leaks
  // there.
  if (std::string left = memory_.left_behind(); simulated && !left.empty()) {
    internal::complain(options, {left});
  }
}

void System::wait_until(OutcomeBase& outcome) {
  std::unique_lock lock(outcome.mutex);
  outcome.changed.wait(lock, [&] { return outcome.finished; });
}

}  // namespace otp
