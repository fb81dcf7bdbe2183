#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace jobs {

/// A point in time: how old the database is. It only ever grows, at the pace of real time, also
/// through restarts of the service.
///
/// Every time that decides something (a retry, a rate, an order) is a Moment, never a time of day:
/// somebody who sets the clock neither delays a retry by a year nor makes all of them due.
using Moment = std::chrono::milliseconds;

/// What the machine's clocks say now.
struct ClockReading {
  std::string boot;  ///< the kernel's boot id
  std::chrono::milliseconds
      elapsed{};                     ///< CLOCK_BOOTTIME: since boot, sleep included, cannot be set
  std::chrono::milliseconds wall{};  ///< CLOCK_REALTIME: UTC since 1970, can be set

  static ClockReading now();
};

/// What is stored with each batch, so that the next start goes on from there.
struct ClockRecord {
  std::string boot;
  std::chrono::milliseconds elapsed{};
  Moment moment{};
  std::chrono::milliseconds wall_offset{};

  friend bool operator==(const ClockRecord&, const ClockRecord&) = default;
};

/// Turns clock readings into Moments.
///
/// For showing, Moments become times of day by an offset. It follows the wall clock only when that
/// is more than 10 s away (somebody set it), so that small corrections never stretch or shrink the
/// distance of two shown times; each job keeps the offset of its acceptance, so its duration is
/// never negative.
class Clock {
 public:
  static constexpr std::chrono::milliseconds kWallStepMin{10'000};

  /// Goes on from the last record. In the same boot the time between is measured; after a boot it
  /// is what the wall clock says, and nothing if that went backwards.
  static Clock resume(const std::optional<ClockRecord>& stored, const ClockReading& now);

  Moment moment(std::chrono::milliseconds elapsed) const { return elapsed + base_; }
  ClockRecord record(const ClockReading& now);

 private:
  std::chrono::milliseconds base_{};
  std::chrono::milliseconds wall_offset_{};
};

/// "2026-11-30T13:50:41.123Z". Years outside 0 to 9999 are shown as the nearest of those.
std::string utc_text(std::chrono::milliseconds since_1970);

}  // namespace jobs
