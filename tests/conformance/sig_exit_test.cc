// Exit signals and how a process ends.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Ping {
  int number = 0;
};
struct Pong {
  int number = 0;
};
struct Go {};

/// Answers each Ping to `main`.
Async<void> echo(Pid main) {
  for (;;) {
    Ping ping = co_await receive<Ping>();
    (void)send(main, Pong{ping.number});
  }
}

ExitReason detailed() {
  return ExitReason(Term::tuple({Term::atom("broken"), Term(7), Term("pipe")}));
}

struct Ask {
  using Reply = void;
};
class Silent {
 public:
  CallResult<void> handle_call(Ask) { return noreply(); }
};

}  // namespace

TEST_CASE("SIG-005 an exit signal ends its receiver with exactly its reason", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor(wait_for_ever);
    otp::exit(pid, detailed());
    const ExitReason reason = co_await down_of(reference);
    require(reason == detailed(), reason.to_string());
    auto [second, down] = spawn_monitor(wait_for_ever);
    otp::exit(second, ExitReason::shutdown());
    require_reason(co_await down_of(down), "shutdown");
  });
}

TEST_CASE("SIG-006 an exit signal with normal from another process is dropped", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid pid = spawn(echo, self());
    otp::exit(pid, ExitReason::normal());
    (void)send(pid, Ping{1});
    require((co_await receive<Pong>()).number == 1, "it answers");
    require(is_alive(pid), "it lives");
    co_await end(pid);
  });
}

TEST_CASE("SIG-007 kill ends a process that traps, with killed and without a message", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor(
        [](Pid main) -> Async<void> {
          trap_exit(true);
          (void)send(main, Go{});
          (void)co_await receive<ExitMessage>();
          (void)send(main, Pong{});
        },
        self());
    (void)co_await receive<Go>();
    otp::exit(pid, ExitReason::kill());
    require_reason(co_await down_of(reference), "killed");
    co_await require_silence();
  });
}

TEST_CASE("SIG-009 an exit signal with normal to oneself ends the process", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor(
        [](Pid main) -> Async<void> {
          otp::exit(self(), ExitReason::normal());
          co_await yield();
          (void)send(main, Pong{});
        },
        self());
    require_reason(co_await down_of(reference), "normal");
    co_await require_silence();
  });
}

TEST_CASE("SIG-010 a process that traps and kills itself ends with killed", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor(
        [](Pid main) -> Async<void> {
          trap_exit(true);
          otp::exit(self(), ExitReason::kill());
          co_await yield();
          (void)send(main, Pong{});
        },
        self());
    require_reason(co_await down_of(reference), "killed");
    co_await require_silence();
  });
}

TEST_CASE("SIG-011 of two exit signals of one sender the first counts", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor(wait_for_ever);
    otp::exit(pid, ExitReason::atom("first"));
    otp::exit(pid, ExitReason::atom("second"));
    require_reason(co_await down_of(reference), "first");
    co_await require_silence();
  });
}

TEST_CASE("SIG-012 an exit signal to the dead or to nobody does nothing", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid dead = spawn([] {});
    co_await gone(dead);
    const Pid never{0, (uint64_t{9} << 32) | 1'000'000};
    // A process that was given the place of the dead one must not get its signals.
    std::vector<Pid> others;
    for (int i = 0; i < 3; ++i) others.push_back(spawn(echo, self()));
    for (Pid nobody : {dead, never, Pid()}) {
      otp::exit(nobody, ExitReason::atom("bad"));
      otp::exit(nobody, ExitReason::kill());
    }
    for (Pid each : others) {
      (void)send(each, Ping{});
      (void)co_await receive<Pong>();
      require(is_alive(each), "another process got it");
    }
    for (Pid each : others) co_await end(each);
  });
}

TEST_CASE("SIG-013 a process that waits ends as soon as an exit signal arrives", "[sig]") {
  everywhere([]() -> Async<void> {
    auto silent = (co_await start<Silent>()).or_exit();
    const Body waits[] = {
        []() -> Async<void> { (void)co_await receive<Go>(after(1h)); },
        []() -> Async<void> { (void)co_await receive<Go>(); },
        []() -> Async<void> { co_await otp::sleep(1h); },
    };
    for (Body wait : waits) {
      for (const char* why : {"stop_it", "kill"}) {
        auto [pid, reference] = spawn_monitor(wait);
        co_await yield();
        const Duration before = now();
        otp::exit(pid, ExitReason::atom(why));
        require((co_await down_of(reference)).is(why[0] == 'k' ? "killed" : why), why);
        require(!simulated() || now() == before, "it took its time");
      }
    }
    for (const char* why : {"stop_it", "kill"}) {
      auto [pid, reference] = spawn_monitor(
          [](Server<Silent> to) -> Async<void> { co_await call(to, Ask{}, {.timeout = 1h}); },
          silent);
      co_await yield();
      const Duration before = now();
      otp::exit(pid, ExitReason::atom(why));
      require((co_await down_of(reference)).is(why[0] == 'k' ? "killed" : why), why);
      require(!simulated() || now() == before, "the call took its time");
    }
    co_await otp::stop(silent);
  });
}

TEST_CASE("SIG-014 a process whose body returns ends with normal", "[sig]") {
  everywhere([]() -> Async<void> {
    require_reason(co_await end_of([]() -> Async<void> { co_return; }), "normal");
    auto [plain, reference] = spawn_monitor([] {});
    require_reason(co_await down_of(reference), "normal");
  });
}

TEST_CASE("SIG-015 an exception that nobody caught becomes a reason, and others go on", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid other = spawn(echo, self());
    const ExitReason reason = co_await end_of([]() -> Async<void> {
      co_await yield();
      throw std::runtime_error("boom");
    });
    const auto& pair = reason.term().items();
    require(reason.term().kind() == Term::Kind::tuple && pair.size() == 2, "not a pair");
    require_equal(pair[0].to_string(), "{std::runtime_error,\"boom\"}");
    require(pair[1].kind() == Term::Kind::object, "no trace");
    require(reason.is_abnormal(), "abnormal");
    (void)send(other, Ping{2});
    require((co_await receive<Pong>()).number == 2, "the other goes on");
    co_await end(other);
  });
}

TEST_CASE("SIG-016 a thrown value is told from an exit with it", "[sig]") {
  everywhere([]() -> Async<void> {
    const ExitReason thrown = co_await end_of([]() -> Async<void> {
      co_await yield();
      throw 42;
    });
    const auto& pair = thrown.term().items();
    require(pair.size() == 2, thrown.to_string());
    require_equal(pair[0].to_string(), "{nocatch,{int,\"42\"}}");
    const ExitReason meant = co_await end_of([]() -> Async<void> {
      otp::exit(ExitReason(Term(42)));
      co_return;
    });
    require_reason(meant, "42");
  });
}

TEST_CASE("SIG-034 what a sender sends after an exit signal is never handled", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor(echo, self());
    (void)send(pid, Ping{1});
    otp::exit(pid, ExitReason::atom("away"));
    (void)send(pid, Ping{2});
    require_reason(co_await down_of(reference), "away");
    while (auto seen = co_await receive<Pong>(after(0s))) {
      require(seen->number == 1, "it handled what came after the exit signal");
    }
  });
}
