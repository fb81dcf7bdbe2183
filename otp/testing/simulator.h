#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "otp/runtime/system.h"

namespace otp {

/// A System that runs on the calling thread, under a seeded scheduler, in virtual time.
///
///     otp::Simulator sim(seed);
///     int answer = sim.run(my_test);           // a 5 s timeout inside takes no time
///     sim.advance(std::chrono::hours(1));
///
/// The same code as under threads, but: which runnable process goes next is drawn from the seed,
/// the clock stands still while anything is runnable and then jumps to the next timer, and the
/// blocking lane runs its functions inline. One seed gives one trace, in every build: trace_hash()
/// of two runs is equal, so a failure is replayed by its seed.
///
/// Threads: one, the one that made it.
class Simulator : public System {
 public:
  explicit Simulator(uint64_t seed, SystemOptions options = {})
      : System(with_seed(std::move(options), seed), true), seed_(seed) {}
  ~Simulator() override { shut_down(); }

  uint64_t seed() const { return seed_; }

  /// One slice of one process. False: nothing is runnable until time moves.
  bool step();
  /// Runs what is runnable now; time stands still. Returns the slices run.
  uint64_t run_until_idle();
  /// Runs everything that happens within the next `time`, timers included, and moves the clock by
  /// it.
  void advance(Timeout time);

  /// Virtual time since the Simulator was made.
  Duration now() const;
  /// A number for everything that was scheduled so far and when.
  uint64_t trace_hash() const;

 protected:
  /// Runs until the process of run() is done. Throws std::logic_error when nothing can happen any
  /// more.
  void wait_until(OutcomeBase& outcome) override;

 private:
  static SystemOptions with_seed(SystemOptions options, uint64_t seed) {
    options.seed = seed;
    options.cores = 1;
    return options;
  }
  uint64_t seed_;
};

}  // namespace otp
