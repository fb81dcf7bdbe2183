// Registered names.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>

#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Go {};

ExitReason bad() { return ExitReason::atom("bad"); }

Async<void> end_on_go() {
  (void)co_await receive<Go>();
  otp::exit(bad());
}

/// 20 us of work, and then the turn of others.
Async<void> pause_busily() {
  const auto until = std::chrono::steady_clock::now() + 20us;
  while (std::chrono::steady_clock::now() < until) {}
  co_await yield();
}

}  // namespace

TEST_CASE("SIG-028 the DOWN of a monitor by name names the name", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(end_on_go);
    require(register_name("counter", other), "registered");
    Reference by_name = monitor("counter");
    Reference by_pid = monitor(other);
    (void)send(other, Go{});
    auto named = [](const Down& down) { return down.name == "counter"; };
    Down down = co_await receive<Down>(named);
    require(down.reference == by_name && down.reason == bad(), "the named DOWN");
    require(!down.pid, "a pid stands in the place of the name");
    down = co_await receive<Down>();
    require(down.reference == by_pid && down.pid == other && down.name.empty(), "the other one");
    // Nobody has the name: the same form.
    Reference none = monitor("counter");
    down = co_await receive<Down>();
    require(down.reference == none && down.name == "counter" && !down.pid, "the noproc's name");
    require_reason(down.reason, "noproc");
    co_await require_silence();
  });
}

TEST_CASE("SIG-036 a name is free before the death of its process is told", "[sig]") {
  // 100 times a round: 100,000 rounds on threads.
  everywhere([]() -> Async<void> {
    trap_exit(true);
    const int times = simulated() ? 4 : 100;
    for (int i = 0; i < times; ++i) {
      const bool linked = i % 2 == 0;
      Pid holder = linked ? spawn_link(end_on_go) : spawn(end_on_go);
      require(register_name("holder", holder), "the name was not free");
      if (!linked) monitor(holder);
      (void)send(holder, Go{});
      (void)co_await receive<ExitMessage, Down>();
    }
    require(!whereis("holder"), "the dead one still has the name");
    co_await require_silence();
  });
}

TEST_CASE("SIG-036 a name is free before a watcher on another core hears of the death", "[sig]") {
  on_threads(
      []() -> Async<void> {
        static std::atomic<bool> may_end;
        for (int i = 0; i < 20; ++i) {
          may_end = false;
          Pid holder = spawn([]() -> Async<void> {
            // Busy, and silent: work that another core takes over.
            while (!may_end) co_await pause_busily();
          });
          require(register_name("holder", holder), "the name was not free");
          monitor(holder);
          for (int k = 0; k < 20; ++k) co_await pause_busily();
          may_end = true;
          while (!(co_await receive<Down>(after(0ms)))) {}
        }
      },
      kFewRounds);
}

TEST_CASE("SIG-037 a name that cannot be given is refused and nothing changes", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid first = spawn(wait_for_ever);
    Pid second = spawn(wait_for_ever);
    Pid dead = spawn([] {});
    co_await gone(dead);
    require(register_name("taken", first), "registered");
    require(!register_name("taken", second), "the name is taken");
    require(whereis("taken") == first, "it went to the second");
    require(!register_name("other", first), "a second name for one process");
    require(!whereis("other"), "the second name is there");
    require(!register_name("late", dead) && !whereis("late"), "a dead process");
    require(!register_name("undefined", second) && !whereis("undefined"), "the reserved name");
    require(!unregister_name("unknown"), "an unknown name");
    require(register_name("second", second), "the second is still without a name");
    require(unregister_name("taken") && !whereis("taken"), "unregistered");
    require(register_name("taken", first), "the first may have a name again");
    co_await end(first);
    co_await end(second);
    require(!whereis("taken") && !whereis("second"), "names of the dead");
  });
}
