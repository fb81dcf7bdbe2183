#include "otp/testing/simulator.h"

#include <stdexcept>
#include <string>

namespace otp {

namespace {

// The environment in which processes of a simulated System run, on the caller's thread.
class SimulationScope {
 public:
  explicit SimulationScope(internal::SystemImpl& system) : outside_(system) {
    outside_.env().core = &system.core(0);
    system.core(0).owner.store(&outside_.env(), internal::relaxed);
  }
  internal::Env& env() { return outside_.env(); }

 private:
  internal::OutsideScope outside_;
};

}  // namespace

bool Simulator::step() {
  SimulationScope scope(impl());
  return impl().step(scope.env());
}

uint64_t Simulator::run_until_idle() {
  SimulationScope scope(impl());
  uint64_t slices = 0;
  while (impl().step(scope.env())) ++slices;
  return slices;
}

void Simulator::advance(Timeout time) {
  SimulationScope scope(impl());
  int64_t start = impl().now();
  int64_t end = time.nanoseconds() > internal::TimerWheel::kNever - 1 - start
                    ? internal::TimerWheel::kNever - 1
                    : start + time.nanoseconds();
  do {
    while (impl().step(scope.env())) {}
  } while (impl().advance_to_next_timer(scope.env(), end));
  impl().set_virtual_now(end);
}

Duration Simulator::now() const { return Duration(const_cast<Simulator*>(this)->impl().now()); }

uint64_t Simulator::trace_hash() const { return const_cast<Simulator*>(this)->impl().trace_hash(); }

void Simulator::wait_until(OutcomeBase& outcome) {
  SimulationScope scope(impl());
  while (!outcome.finished) {
    if (impl().step(scope.env())) continue;
    if (impl().advance_to_next_timer(scope.env(), internal::TimerWheel::kNever - 1)) continue;
    throw std::logic_error("simulation with seed " + std::to_string(seed_) +
                           ": nothing can happen any more, and the process of run() still waits");
  }
}

}  // namespace otp
