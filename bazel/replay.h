#pragma once

#include <cstdint>
#include <exception>

namespace otp::testing {

/// Says which seed decides what the test does now, for as long as it lives:
///
///     otp::testing::Replay replay(seed);
///     otp::Simulator simulator(seed);
///
/// When an assertion fails meanwhile, or an exception leaves the scope, the run prints the seed and
/// the command that runs the test case with it alone, in the environment variable OTP_SEED. Reading
/// that variable is up to the test. Threads: the test's own.
class Replay {
 public:
  explicit Replay(uint64_t seed) : before_(current), exceptions_(std::uncaught_exceptions()) {
    current = seed;
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  ~Replay() {
    if (std::uncaught_exceptions() > exceptions_ && failed == 0) failed = current;
    current = before_;
  }

  // For the listener in catch2_main.cc. 0: none.
  static inline uint64_t current = 0;
  static inline uint64_t failed = 0;

 private:
  const uint64_t before_;
  const int exceptions_;
};

}  // namespace otp::testing
