// What the contract's rows do not say; those are in tests/conformance/gs_*_test.cc.
#include "otp/behaviour/gen_server.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

struct Increment {
  using Reply = int64_t;
  int64_t by = 1;
};

struct Counter {
  int64_t handle_call(Increment msg) { return number += msg.by; }
  int64_t number = 40;
};

class SlowStarter {
 public:
  Async<Init> init() {
    co_await otp::sleep(200ms);
    co_return otp::ok();
  }
};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

}  // namespace

TEST_CASE("a server's handlers are plain functions", "[gen_server]") {
  Counter counter;
  CHECK(counter.handle_call(Increment{.by = 2}) == 42);
}

TEST_CASE("a start that takes too long is undone", "[gen_server]") {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed);
    simulator.run([]() -> Async<void> {
      auto slow = co_await start_link<SlowStarter>({}, {.name = "slow", .timeout = 50ms});
      require(slow.error().is("timeout"), slow.error().to_string());
      require(!whereis("slow"), "the name is free");
      auto in_time = co_await start_link<SlowStarter>({}, {.name = "slow", .timeout = 300ms});
      require(in_time.ok(), "in time");
    });
    CHECK(simulator.now() == 250ms);
  }
}

TEST_CASE("a thread outside of processes starts and calls a server", "[gen_server]") {
  Simulator simulator(1);
  auto counter = start<Counter>(simulator).or_exit();
  CHECK(call(simulator, counter, Increment{.by = 2}) == 42);
}
