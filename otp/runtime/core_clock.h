#pragma once

#include <cstdint>

/// The monotonic clock as a core reads it many times a microsecond.
namespace otp::internal {

/// CLOCK_MONOTONIC in nanoseconds.
int64_t monotonic_now();

/// Between two readings of CLOCK_MONOTONIC, at most 100 µs apart, the time is carried on by the
/// processor's cycle counter, which costs a third of a reading.
///
/// Never behind CLOCK_MONOTONIC by more than a few nanoseconds, so that nothing ends early; ahead
/// by at most 0.2 µs. A counter that jumps or runs at another pace is noticed at the next reading.
/// Threads: the core's holder.
class CoreClock {
 public:
  int64_t now() {
#if defined(__x86_64__)
    const uint64_t ticks = __builtin_ia32_rdtsc() - ticks_at_base_;
    if (ticks < ticks_max_) [[likely]]
      return base_ + static_cast<int64_t>((ticks * scale_) >> 32);
    return read();
#else
    return monotonic_now();
#endif
  }

 private:
  int64_t read();

  int64_t base_ = 0;  // the last reading
  uint64_t ticks_at_base_ = 0;
  uint64_t ticks_max_ = 0;  // 0: the pace is not known, read each time
  uint64_t scale_ = 0;      // nanoseconds a tick, times 2^32, rounded up
  int64_t paced_ = 0;       // the reading from which the pace is measured
  uint64_t ticks_at_paced_ = 0;
};

}  // namespace otp::internal
