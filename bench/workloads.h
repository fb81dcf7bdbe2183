#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "otp/async/async.h"

namespace bench {

using Numbers = std::array<int64_t, 4>;
using Workload = otp::Async<void> (*)(Numbers);

/// Nanoseconds of the monotonic clock.
int64_t wall();
/// Prints a result line; `ns` is the whole time of `operations`.
void report(const std::string& name, double operations, double ns, const std::string& extra = "");

std::map<std::string, Workload> core_workloads();
std::map<std::string, Workload> supervision_workloads();

}  // namespace bench
