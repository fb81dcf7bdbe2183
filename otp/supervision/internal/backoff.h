#pragma once

#include <cstdint>
#include <utility>

#include "otp/supervision/child_spec_types.h"

namespace otp::internal {

/// The pauses before the restarts of one child: each `factor` times the last, up to `max`; a run
/// that outlasts `max` begins anew.
class BackoffState {
 public:
  void started(int64_t now) { started_at_ = now; }

  /// The pause before the next restart; zero: none.
  Duration next(const Backoff& backoff, int64_t now) {
    if (backoff.min <= Duration(0)) return Duration(0);
    const int64_t started_at = std::exchange(started_at_, kNotStarted);
    const bool long_run = started_at != kNotStarted && now - started_at > backoff.max.count();
    if (long_run || pause_ == Duration(0)) {
      pause_ = backoff.min;
    } else {
      const double longer = static_cast<double>(pause_.count()) * backoff.factor;
      const bool at_most = longer >= static_cast<double>(backoff.max.count());
      pause_ = at_most ? backoff.max : Duration(static_cast<int64_t>(longer));
    }
    return pause_;
  }

 private:
  static constexpr int64_t kNotStarted = -1;
  Duration pause_{0};
  int64_t started_at_ = kNotStarted;  // the last start, until its end was looked at
};

}  // namespace otp::internal
