#pragma once

#include <cstdint>

namespace otp::internal {

/// Processors this OS process may use: the affinity mask, cut down to the cgroup's quota (rounded
/// up). At least 1.
uint32_t usable_processors();

}  // namespace otp::internal
