// Monitors: one DOWN each.
#include <catch2/catch.hpp>
#include <set>

#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Go {};
struct Seen {};

ExitReason bad() { return ExitReason::tagged("bad", Term("why")); }

Async<void> end_on_go() {
  (void)co_await receive<Go>();
  otp::exit(bad());
}

}  // namespace

TEST_CASE("SIG-018 spawn_monitor misses no end, however early", "[sig]") {
  everywhere([]() -> Async<void> {
    for (int i = 0; i < 10; ++i) {
      auto [pid, reference] = spawn_monitor([] { otp::exit(bad()); });
      Down down = co_await receive<Down>();
      require(down.reference == reference && down.pid == pid, "another one's DOWN");
      require(down.reason == bad(), down.reason.to_string());
    }
    co_await require_silence();
  });
}

TEST_CASE("SIG-025 a monitor tells once, and only its own side", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(end_on_go);
    Pid watcher = spawn([](Pid pid) { monitor(pid); }, other);
    co_await gone(watcher);
    require(is_alive(other), "the end of a watcher is nothing to the watched");
    Reference reference = monitor(other);
    (void)send(other, Go{});
    Down down = co_await receive<Down>();
    require(down.reference == reference && down.pid == other, "another one's DOWN");
    require(down.reason == bad() && down.name.empty(), down.reason.to_string());
    co_await require_silence();
  });
}

TEST_CASE("SIG-026 a monitor of the dead tells noproc at once", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid dead = spawn([] { otp::exit(bad()); });
    co_await gone(dead);
    for (Pid each : {dead, Pid{0, (uint64_t{2} << 32) | 777'777}}) {
      const Duration before = now();
      Reference reference = monitor(each);
      Down down = co_await receive<Down>();
      require(down.reference == reference && down.pid == each, "another one's DOWN");
      require_reason(down.reason, "noproc");
      require(!simulated() || now() == before, "it took its time");
    }
    co_await require_silence();
  });
}

TEST_CASE("SIG-026 a monitor of a dead process whose slot has a new tenant tells noproc", "[sig]") {
  everywhere(
      []() -> Async<void> {
        Pid dead = spawn([] { otp::exit(bad()); });
        co_await gone(dead);
        const std::vector<Pid> tenants = tenants_after(dead);
        Reference reference = monitor(dead);
        Down down = co_await receive<Down>();
        require(down.reference == reference && down.pid == dead, "another one's DOWN");
        require_reason(down.reason, "noproc");
        for (Pid each : tenants) co_await end(each);
      },
      kFewRounds);
}

TEST_CASE("SIG-027 three monitors of one process tell three times", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(end_on_go);
    std::set<Reference> references = {monitor(other), monitor(other), monitor(other)};
    require(references.size() == 3, "equal references");
    (void)send(other, Go{});
    for (int i = 0; i < 3; ++i) {
      Down down = co_await receive<Down>();
      require(references.erase(down.reference) == 1, "told twice");
      require(down.pid == other && down.reason == bad(), down.reason.to_string());
    }
    co_await require_silence();
  });
}

TEST_CASE("SIG-029 a process that monitors itself hears nothing", "[sig]") {
  everywhere([]() -> Async<void> {
    Reference reference = monitor(self());
    require(bool(reference), "no reference");
    co_await require_silence();
    (void)demonitor(reference);
    (void)demonitor(reference, true);
    auto [pid, down] = spawn_monitor([] { monitor(self()); });
    require_reason(co_await down_of(down), "normal");
    co_await require_silence();
  });
}

TEST_CASE("SIG-030 after demonitor no DOWN arrives", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(end_on_go);
    Reference removed = monitor(other);
    require(demonitor(removed), "it was not active");
    (void)send(other, Go{});
    co_await gone(other);
    co_await require_silence();
    // While the other ends: either the DOWN was there before, or it never comes.
    for (int i = 0; i < 4; ++i) {
      auto [ending, racing] = spawn_monitor([] { otp::exit(bad()); });
      if (i % 2 == 1) co_await yield();
      if (demonitor(racing)) {
        co_await gone(ending);
        co_await require_silence();
      } else {
        require(bool(co_await receive<Down>(after(0s))), "neither active nor told");
      }
    }
  });
}

TEST_CASE("SIG-031 demonitor with flush removes its own DOWN and no other", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(end_on_go);
    Reference first = monitor(other);
    Reference second = monitor(other);
    (void)send(other, Go{});
    co_await gone(other);
    (void)demonitor(first, true);
    Down left = co_await receive<Down>();
    require(left.reference == second, "the wrong one went");
    co_await require_silence();
    // In a race the DOWN goes too, whether it has arrived or not.
    for (int i = 0; i < 4; ++i) {
      auto [ending, racing] = spawn_monitor([] { otp::exit(bad()); });
      if (i % 2 == 1) co_await yield();
      (void)demonitor(racing, true);
      co_await gone(ending);
      require(!co_await receive<Down>(after(0s)), "a DOWN after the flush");
    }
  });
}

TEST_CASE("SIG-032 demonitor of what is no active monitor of ours does nothing", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(end_on_go);
    Pid watcher = spawn(
        [](Pid pid, Pid main) -> Async<void> {
          Reference reference = monitor(pid);
          (void)send(main, reference);
          if ((co_await down_of(reference)) == bad()) (void)send(main, Seen{});
        },
        other, self());
    Reference theirs = co_await receive<Reference>();
    require(!demonitor(theirs), "another process's monitor");
    require(!demonitor(make_ref()), "a reference that was never a monitor");
    require(!demonitor(Reference()), "no reference");
    Reference removed = monitor(other);
    require(demonitor(removed) && !demonitor(removed), "removed twice");
    Reference fired = monitor(other);
    (void)send(other, Go{});
    require(co_await down_of(fired) == bad(), "the DOWN");
    require(!demonitor(fired), "fired already");
    (void)co_await receive<Seen>();
    co_await gone(watcher);
    co_await require_silence();
  });
}
