// The words of a child specification: what supervisors act on and configuration files are written
// in. Names and meanings are OTP's (supervisor(3)). It knows nothing of processes, nor of YAML.

#pragma once

#include <chrono>
#include <cstdint>

#include "otp/base/mailbox_limit.h"
#include "otp/base/timeout.h"

namespace otp {

/// Whom a supervisor restarts when one child ends: that child, all of them, or it and those started
/// after it.
///
/// OTP: supervisor:strategy(). `simple_one_for_one` is DynamicSupervisor, as in Elixir.
enum class Strategy { one_for_one, one_for_all, rest_for_one };

/// When a child is restarted: always, after an abnormal end only, never.
enum class Restart { permanent, transient, temporary };

/// What a child is: reports, count_children and the default shutdown time depend on it.
enum class ChildType { worker, supervisor };

/// When a supervisor stops by itself because significant children have ended.
enum class AutoShutdown { never, any_significant, all_significant };

/// How long a child may take to stop once it was told to: a time after which it is killed, for
/// ever, or not at all.
///
/// OTP: supervisor:shutdown(). Defaults: 5 s for a worker, infinity for a supervisor. Differs: a
/// process that was killed ends when the callback that it is in returns or waits. One that does
/// neither cannot be ended; its supervisor waits for it and logs an error that names it, 5 s after
/// the kill and then every 10 s. The runtime logs where the callback is.
class Shutdown {
 public:
  /// Killed at once, terminate does not run.
  static const Shutdown brutal_kill;

  constexpr Shutdown(Timeout timeout) : timeout_(timeout) {}
  template <class Rep, class Period>
  constexpr Shutdown(std::chrono::duration<Rep, Period> time)
      : timeout_(time), negative_(time.count() < 0) {}

  constexpr bool is_brutal_kill() const { return brutal_kill_; }
  constexpr bool is_infinity() const { return !brutal_kill_ && timeout_.is_infinite(); }
  /// Made from a negative duration: no specification is valid with it.
  constexpr bool is_negative() const { return negative_; }
  /// The time allowed; zero for brutal_kill.
  constexpr Timeout timeout() const { return timeout_; }
  friend constexpr bool operator==(const Shutdown&, const Shutdown&) = default;

 private:
  constexpr Shutdown(Timeout timeout, bool brutal_kill)
      : timeout_(timeout), brutal_kill_(brutal_kill) {}

  Timeout timeout_;
  bool brutal_kill_ = false;
  bool negative_ = false;
};

inline constexpr Shutdown Shutdown::brutal_kill{Timeout(std::chrono::seconds(0)), true};

/// A pause before each restart: `min` before the first, `factor` times longer before each following
/// one up to `max`; back to `min` after a run of the child that outlasts `max`. It stands beside
/// the restart intensity and does not weaken it. Off by default. Ours.
struct Backoff {
  Duration min{0};  ///< 0 = restart at once, as OTP does
  Duration max{0};
  double factor = 2;

  friend bool operator==(const Backoff&, const Backoff&) = default;
};

inline constexpr Strategy kDefaultStrategy = Strategy::one_for_one;
inline constexpr uint32_t kDefaultIntensity = 1;
inline constexpr Duration kDefaultPeriod = std::chrono::seconds(5);
inline constexpr Duration kDefaultWorkerShutdown = std::chrono::seconds(5);

}  // namespace otp
