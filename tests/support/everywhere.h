#pragma once

#include <stdexcept>
#include <string>

#include "otp/runtime/runtime.h"
#include "otp/testing/simulator.h"

/// For tests of the library: the same steps under many seeds and on two cores, and what a process
/// holds before and after.
namespace otp::testing {

/// Fails the test from inside a process: what is thrown leaves System::run.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

/// What a process holds: for "everything is as it was before".
struct Holdings {
  size_t messages = 0;
  size_t links = 0;
  size_t monitors = 0;
  friend bool operator==(const Holdings&, const Holdings&) = default;

  std::string to_string() const {
    return std::to_string(messages) + " messages, " + std::to_string(links) + " links, " +
           std::to_string(monitors) + " monitors";
  }
};

inline Holdings holdings() {
  using namespace internal;
  LibraryScope scope(env());
  Process& process = self_process();
  process.drain_now();
  Process::Relations* relations = process.relations_if_any();
  if (relations == nullptr) return {process.queue_length(), 0, 0};
  return {process.queue_length(), relations->links.size(), relations->monitors.size()};
}

/// Lets everything that is under way arrive, then requires that `before` still holds.
inline Async<void> require_nothing_left(Holdings before) {
  for (int i = 0; i < 5; ++i) co_await otp::sleep(std::chrono::milliseconds(1));
  Holdings now = holdings();
  require(now == before, "left: " + now.to_string() + ", was: " + before.to_string());
}

/// Runs `test` once for each seed; what it throws is thrown with the seed in front.
inline void simulate(Async<void> (*test)(), uint64_t seeds = 100) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Simulator simulator(seed);
    try {
      simulator.run(test);
    } catch (const std::exception& error) {
      throw std::logic_error("seed " + std::to_string(seed) + ": " + error.what());
    }
  }
}

inline void on_two_cores(Async<void> (*test)(), int rounds = 30) {
  SystemOptions options;
  options.cores = 2;
  System system(options);
  for (int round = 0; round < rounds; ++round) system.run(test);
}

inline void everywhere(Async<void> (*test)()) {
  simulate(test);
  on_two_cores(test);
}

/// The reason in the DOWN of `reference`.
inline Async<ExitReason> down_of(Reference reference) {
  auto wanted = [reference](const Down& each) { return each.reference == reference; };
  Down down = co_await receive<Down>(wanted);
  co_return down.reason;
}

/// Runs `body` in a process of its own; the reason with which that ends.
inline Async<ExitReason> end_of(Async<void> (*body)()) {
  auto spawned = spawn_monitor(body);
  co_return co_await down_of(spawned.second);
}

/// `{Reason, ...}`: the first item of an exit's reason.
inline Term first_of(const ExitReason& reason) {
  return reason.term().items().empty() ? Term() : reason.term().items().front();
}

}  // namespace otp::testing
