#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace otp {

using Duration = std::chrono::nanoseconds;

/// How long to wait: any std::chrono duration, or otp::infinity.
///
/// A duration that does not fit 64-bit nanoseconds (about 292 years) becomes infinity instead of
/// overflowing; NaN and negative durations count as zero: look once, do not wait.
class Timeout {
 public:
  template <class Rep, class Period>
  constexpr Timeout(std::chrono::duration<Rep, Period> duration) : ns_(saturate(duration)) {}

  static constexpr Timeout forever() { return Timeout(); }
  constexpr bool is_infinite() const { return ns_ == kForever; }
  constexpr int64_t nanoseconds() const { return ns_; }
  constexpr Duration duration() const { return Duration(ns_); }
  friend constexpr bool operator==(Timeout, Timeout) = default;
  friend constexpr auto operator<=>(Timeout, Timeout) = default;

 private:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
  constexpr Timeout() : ns_(kForever) {}

  template <class Rep, class Period>
  static constexpr int64_t saturate(std::chrono::duration<Rep, Period> duration) {
    if (!(duration.count() > Rep{0})) return 0;
    // long double holds every int64 exactly on this platform, so the comparison is exact enough.
    constexpr long double factor =
        1e9L * static_cast<long double>(Period::num) / static_cast<long double>(Period::den);
    long double ns = static_cast<long double>(duration.count()) * factor;
    if (ns >= static_cast<long double>(kForever)) return kForever;
    return static_cast<int64_t>(ns);
  }

  int64_t ns_;
};

/// Waits for ever.
inline constexpr Timeout infinity = Timeout::forever();

}  // namespace otp
