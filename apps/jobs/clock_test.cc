#include "apps/jobs/clock.h"

#include <catch2/catch.hpp>
#include <cstdint>

namespace jobs {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr auto kYear = hours(24 * 365);

ClockReading reading(milliseconds elapsed, milliseconds wall, const char* boot = "one") {
  return {.boot = boot, .elapsed = elapsed, .wall = wall};
}

}  // namespace

TEST_CASE("moments start at zero and follow elapsed time", "[jobs][clock]") {
  Clock clock = Clock::resume({}, reading(seconds(5), kYear));
  CHECK(clock.moment(seconds(5)) == Moment(0));
  CHECK(clock.moment(seconds(7)) == seconds(2));
  CHECK(clock.record(reading(seconds(7), kYear)).wall_offset == kYear - seconds(2));
}

TEST_CASE("R-007 setting the clock moves no moment, while running and over a restart",
          "[jobs][clock]") {
  Clock clock = Clock::resume({}, reading(seconds(5), 50 * kYear));
  const ClockRecord stepped = clock.record(reading(seconds(15), 49 * kYear));
  CHECK(stepped.moment == seconds(10));
  CHECK(stepped.wall_offset == 49 * kYear - seconds(10));  // what is shown follows
  const Clock again = Clock::resume(stepped, reading(seconds(18), 51 * kYear));
  CHECK(again.moment(seconds(18)) == seconds(13));
}

TEST_CASE("R-007 after a boot the wall clock counts, but never backwards", "[jobs][clock]") {
  Clock clock = Clock::resume({}, reading(seconds(5), 50 * kYear));
  const ClockRecord last = clock.record(reading(seconds(15), 50 * kYear + seconds(10)));
  const Clock later = Clock::resume(last, reading(seconds(1), 50 * kYear + seconds(70), "two"));
  CHECK(later.moment(seconds(1)) == seconds(70));
  const Clock back = Clock::resume(last, reading(seconds(1), 49 * kYear, "two"));
  CHECK(back.moment(seconds(1)) == seconds(10));
  // Without a boot id nobody knows whether it was the same boot.
  ClockRecord nameless = last;
  nameless.boot.clear();
  const Clock unknown = Clock::resume(nameless, reading(hours(9), 50 * kYear + seconds(20), ""));
  CHECK(unknown.moment(hours(9)) == seconds(20));
}

TEST_CASE("small corrections of the wall clock do not change shown distances", "[jobs][clock]") {
  Clock clock = Clock::resume({}, reading(seconds(0), kYear));
  const auto first = clock.record(reading(seconds(0), kYear)).wall_offset;
  CHECK(clock.record(reading(seconds(1), kYear + seconds(10))).wall_offset == first);
  CHECK(clock.record(reading(seconds(1), kYear - seconds(8))).wall_offset == first);
  CHECK(clock.record(reading(seconds(1), kYear + seconds(12))).wall_offset != first);
}

TEST_CASE("times of day are shown in UTC", "[jobs][clock]") {
  CHECK(utc_text(milliseconds(0)) == "1970-01-01T00:00:00.000Z");
  CHECK(utc_text(milliseconds(1796046641123)) == "2026-11-30T13:50:41.123Z");
  CHECK(utc_text(milliseconds(-1)) == "1969-12-31T23:59:59.999Z");
  CHECK(utc_text(milliseconds(INT64_MAX)).substr(0, 4) == "9999");
  CHECK(utc_text(milliseconds(INT64_MIN)).substr(0, 4) == "0000");
}

}  // namespace jobs
