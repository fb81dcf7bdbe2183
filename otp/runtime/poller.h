#pragma once

#include <cstdint>
#include <memory>

namespace otp {

/// Where a core waits when it has nothing to run, and how what comes from outside reaches it.
///
/// otp/runtime has one that only sleeps (make_plain_poller); otp/io has one on Boost.Asio,
/// otp/testing a simulated one. Each core has its own. park() and poll() are called by the thread
/// that holds the core, wake() by any. User code never runs inside a poller: what it completes
/// becomes a letter.
class Poller {
 public:
  virtual ~Poller() = default;

  /// Waits until wake() was called (since the last return of park), something from outside was
  /// handled, or `timeout_ns` passed; negative: no limit. May return early.
  virtual void park(int64_t timeout_ns) = 0;
  /// Makes the current or the next park() return. Never blocks.
  virtual void wake() noexcept = 0;
  /// Handles what is there without waiting.
  virtual void poll() = 0;
};

/// Sleeps on an eventfd, with nanosecond timeouts.
std::unique_ptr<Poller> make_plain_poller();

}  // namespace otp
