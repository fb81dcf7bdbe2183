// Loops that never wait, and times that never come.

#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include "otp/base/compiler.h"
#include "otp/behaviour/gen_server.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

#ifdef OTP_SANITIZED
constexpr int kMany = 100'000;  // sanitizers are slow
#else
constexpr int kMany = 1'000'000;
#endif

class Adder {
 public:
  struct Args {
    int steps = 0;
  };
  struct Add {
    using Reply = int64_t;
    int64_t by = 0;
  };
  struct Steps {
    using Reply = int;
  };
  struct Again {};
  explicit Adder(Args args) : left_(args.steps) {}
  Init init() { return ok().then_continue(Again{}); }
  CastResult handle_continue(Again) {
    if (steps_ == left_) return noreply();
    ++steps_;
    return noreply().then_continue(Again{});
  }
  int64_t handle_call(Add message) { return sum_ += message.by; }
  int handle_call(Steps) { return steps_; }

 private:
  int left_;
  int steps_ = 0;
  int64_t sum_ = 0;
};

void check(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

Async<int64_t> receive_all() {
  for (int i = 0; i < kMany; ++i) (void)send(self(), i);
  int64_t sum = 0;
  for (int i = 0; i < kMany; ++i) sum += co_await receive<int>();
  co_return sum;
}

Async<int64_t> call_often() {
  auto server = (co_await start_link<Adder>(Adder::Args{})).or_exit();
  int64_t sum = 0;
  for (int i = 0; i < kMany; ++i) sum = co_await call(server, Adder::Add{.by = 1});
  co_return sum;
}

// The init's own step counts as one of them.
Async<int> continue_often() {
  auto server = (co_await start_link<Adder>(Adder::Args{.steps = kMany})).or_exit();
  co_return co_await call(server, Adder::Steps{}, {.timeout = infinity});
}

}  // namespace

TEST_CASE("R-006 a receive loop, calls and continuations in great number use no stack", "[loops]") {
  SystemOptions options;
  options.cores = 1;
  System system(options);
  CHECK(system.run(receive_all) == int64_t{kMany} * (kMany - 1) / 2);
  CHECK(system.run(call_often) == kMany);
  CHECK(system.run(continue_often) == kMany);
}

TEST_CASE("R-006 another process gets its turn while one never waits", "[loops]") {
  for (auto busy : {receive_all, call_often}) {
    Simulator simulator(3);
    auto counter = std::make_shared<int>(0);
    Pid other = simulator.spawn(
        [](std::shared_ptr<int> turns) -> Async<void> {
          for (;;) {
            ++*turns;
            co_await otp::yield();
          }
        },
        counter);
    (void)simulator.run(busy);
    CHECK(*counter > kMany / 1000);
    CHECK(simulator.is_alive(other));
  }
}

namespace {

struct Tick {
  int64_t after_ms = 0;
};

Async<void> wait_very_long(Simulator* clock) {
  const Duration longest = std::chrono::hours(24 * 36500);  // a hundred years
  const Duration begin = clock->now();
  for (Duration time :
       {Duration(10ms), Duration(2'147'483'648ms), Duration(4'294'967'296ms), longest}) {
    (void)send_after(time, self(), Tick{time / 1ms});
  }
  TimerRef cancelled = send_after(std::chrono::hours(24 * 300), self(), Tick{-1});
  for (int64_t wanted : {int64_t{10}, int64_t{2'147'483'648}}) {
    Tick tick = co_await receive<Tick>();
    check(tick.after_ms == wanted, "order: " + std::to_string(tick.after_ms));
    const Duration passed = clock->now() - begin;
    check(passed >= wanted * 1ms && passed < wanted * 1ms + 1ms, "when");
  }
  auto left = read_timer(cancelled);
  check(left && *left > 0s && *left <= std::chrono::hours(24 * 276), "time left");
  check(cancel_timer(cancelled).has_value() && !cancel_timer(cancelled), "cancelled once");
  for (Duration wanted : {Duration(4'294'967'296ms), longest}) {
    Tick tick = co_await receive<Tick>();
    check(tick.after_ms == wanted / 1ms, "order");
    check(clock->now() - begin >= wanted, "not early");
  }
  // A receive of 300 days, looked at on day 299 and 301.
  const Duration start = clock->now();
  auto waiting = spawn_monitor(
      []() -> Async<void> { (void)co_await receive<Tick>(after(std::chrono::hours(24 * 300))); });
  check(!co_await receive<Down>(after(std::chrono::hours(24 * 299))), "day 299");
  check((co_await receive<Down>(after(std::chrono::hours(24 * 2)))).has_value(), "day 301");
  check(clock->now() - start >= std::chrono::hours(24 * 300), "not early");
  // As long as there is: it does not overflow, it just waits.
  auto server = (co_await start_link<Adder>(Adder::Args{})).or_exit();
  const int64_t sum =
      co_await call(server, Adder::Add{.by = 2}, {.timeout = std::chrono::hours::max()});
  check(sum == 2, "call");
  check(waiting.first != self(), "another process");
}

}  // namespace

TEST_CASE("R-008 waits and timers of days and years are exact and do not overflow", "[time]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    simulator.run(wait_very_long, &simulator);
    CHECK(simulator.now() >= std::chrono::hours(24 * 36500));
  }
}
