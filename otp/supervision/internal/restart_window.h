#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "otp/base/timeout.h"

namespace otp::internal {

/// Counts restarts: more than `intensity` within `period` are too many. OTP keeps a list and walks
/// it at each restart; here old times leave at one end of a ring and new ones enter at the other.
///
/// Takes its times from the System's monotonic clock, so nobody can set it. Memory: at most one
/// word for each restart within the period, and never more than `intensity` + 1.
class RestartWindow {
 public:
  RestartWindow(uint32_t intensity, Duration period)
      : intensity_(intensity), period_(period.count()) {}

  /// Counts a restart at `now`. False: it is one too many. A restart exactly `period` ago still
  /// counts, as in OTP.
  bool add(int64_t now) {
    while (size_ > 0 && now - times_[first_] > period_) {
      first_ = (first_ + 1) & (times_.size() - 1);
      --size_;
    }
    if (size_ >= intensity_) return false;
    if (size_ == times_.size()) grow();
    times_[(first_ + size_) & (times_.size() - 1)] = now;
    ++size_;
    return true;
  }
  size_t size() const { return size_; }

 private:
  void grow() {
    std::vector<int64_t> larger(times_.empty() ? 4 : times_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = times_[(first_ + i) & (times_.size() - 1)];
    times_ = std::move(larger);
    first_ = 0;
  }

  uint32_t intensity_;
  int64_t period_;
  std::vector<int64_t> times_;  // a ring; its size is a power of two
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace otp::internal
