#pragma once

#include <optional>

#include "otp/base/timeout.h"
#include "otp/runtime/runtime.h"

namespace otp {

/// For code that shows or stores times of day: the virtual time of the calling process's Simulator,
/// since that was made; nothing under a real System, whose time is the machine's.
///
/// Threads: inside a process.
inline std::optional<Duration> virtual_time() {
  const internal::SystemImpl& system = internal::self_process().system();
  if (!system.simulated()) return std::nullopt;
  return Duration(system.now());
}

}  // namespace otp
