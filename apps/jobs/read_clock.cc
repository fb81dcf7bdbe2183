#include "apps/jobs/read_clock.h"

#include <chrono>

#include "otp/runtime/virtual_time.h"

namespace jobs {

ClockReading read_clock() {
  using namespace std::chrono;
  const auto since_start = otp::virtual_time();
  if (!since_start) return ClockReading::now();
  constexpr sys_days kFirstDay = year(2026) / January / 1;
  const auto elapsed = duration_cast<milliseconds>(*since_start);
  return {.boot = "simulation", .elapsed = elapsed, .wall = kFirstDay.time_since_epoch() + elapsed};
}

}  // namespace jobs
