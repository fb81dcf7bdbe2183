#include "apps/jobs/clock.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace jobs {
namespace {

using std::chrono::milliseconds;

milliseconds read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(now.tv_sec) +
                                                  std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

ClockReading ClockReading::now() {
  static const std::string boot = [] {
    std::string text;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
    return text;
  }();
  return {.boot = boot, .elapsed = read_clock(CLOCK_BOOTTIME), .wall = read_clock(CLOCK_REALTIME)};
}

Clock Clock::resume(const std::optional<ClockRecord>& stored, const ClockReading& now) {
  Clock clock;
  Moment moment{};
  if (stored) {
    const bool same_boot = stored->boot == now.boot && !now.boot.empty();
    const milliseconds away = same_boot ? now.elapsed - stored->elapsed
                                        : now.wall - (stored->moment + stored->wall_offset);
    moment = stored->moment + std::max(away, milliseconds(0));
    clock.wall_offset_ = stored->wall_offset;
  }
  clock.base_ = moment - now.elapsed;
  return clock;
}

ClockRecord Clock::record(const ClockReading& now) {
  const Moment here = moment(now.elapsed);
  const milliseconds drift = now.wall - (here + wall_offset_);
  if (drift >= kWallStepMin || drift <= -kWallStepMin) wall_offset_ += drift;
  return {.boot = now.boot, .elapsed = now.elapsed, .moment = here, .wall_offset = wall_offset_};
}

std::string utc_text(milliseconds since_1970) {
  using namespace std::chrono;
  constexpr sys_days kFirst = year(0) / January / 1;
  constexpr sys_days kLast = year(9999) / December / 31;
  const auto day = std::clamp(floor<days>(sys_time<milliseconds>(since_1970)), kFirst, kLast);
  const year_month_day date(day);
  const hh_mm_ss time(std::clamp(since_1970 - day.time_since_epoch(), milliseconds(0),
                                 milliseconds(days(1)) - 1ms));
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(time.hours().count()),
                int(time.minutes().count()), int(time.seconds().count()),
                int(time.subseconds().count()));
  return text;
}

}  // namespace jobs
