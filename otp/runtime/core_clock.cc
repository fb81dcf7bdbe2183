#include "otp/runtime/core_clock.h"

#include <ctime>

namespace otp::internal {

int64_t monotonic_now() {
  timespec at;
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1'000'000'000ll + at.tv_nsec;
}

#if defined(__x86_64__)

namespace {
constexpr int64_t kCarriedMax = 100'000;      // ns for which a reading is carried on
constexpr int64_t kPaceMin = 1'000'000;       // ns over which the pace is measured, at least
constexpr int64_t kPaceMax = 10'000'000'000;  // and at most: then a new measurement begins
constexpr uint64_t kReadingTicksMax = 4'000;  // a reading that took longer was interrupted
}  // namespace

int64_t CoreClock::read() {
  const uint64_t before = __builtin_ia32_rdtsc();
  const int64_t at = monotonic_now();
  ticks_max_ = 0;
  if (__builtin_ia32_rdtsc() - before > kReadingTicksMax) return at;
  base_ = at;
  ticks_at_base_ = before;  // earlier than `at`: what is carried on is ahead, never behind
  const int64_t elapsed = at - paced_;
  const uint64_t ticks = before - ticks_at_paced_;
  if (elapsed < kPaceMin) {
    if (scale_ == 0) return at;
  } else {
    const bool plausible = elapsed < kPaceMax && ticks > static_cast<uint64_t>(elapsed) / 8 &&
                           ticks < static_cast<uint64_t>(elapsed) * 8;
    const auto wide = (static_cast<unsigned __int128>(elapsed) << 32) / (ticks == 0 ? 1 : ticks);
    // A thousandth more than measured, as readings take a while themselves.
    scale_ = plausible ? static_cast<uint64_t>(wide) + static_cast<uint64_t>(wide >> 10) + 1 : 0;
    paced_ = at;
    ticks_at_paced_ = before;
  }
  if (scale_ != 0) {
    ticks_max_ =
        static_cast<uint64_t>((static_cast<unsigned __int128>(kCarriedMax) << 32) / scale_);
  }
  return at;
}

#endif

}  // namespace otp::internal
