#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "otp/async/async.h"

namespace bench {

using Numbers = std::array<int64_t, 4>;
using Workload = otp::Async<void> (*)(Numbers);

/// Nanoseconds of the monotonic clock, and of processor time used.
int64_t wall();
int64_t cpu();
/// Prints a result line; `ns` is the whole time of `operations`.
void report(const std::string& name, double operations, double ns, const std::string& extra = "");

/// Aborts when a workload did not do what it measures.
void check(bool right, const char* what);

std::map<std::string, Workload> core_workloads();
std::map<std::string, Workload> supervision_workloads();
std::map<std::string, Workload> task_workloads();
std::map<std::string, Workload> latency_workloads();

}  // namespace bench
