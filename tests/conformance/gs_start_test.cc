// Generic server: how it starts, and how a start fails.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "otp/behaviour/gen_server.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Get {
  using Reply = int;
};
struct Crash {};
struct Watching {};
struct Born {
  Pid pid;
};
struct Ended {
  ExitReason reason;
};

enum class How : uint8_t { ok, slow, stop, error, ignore, throws, exits, exits_normal };

/// Tells `main` how `pid` ended.
Async<void> tell_end(Pid pid, Pid main) {
  Reference reference = monitor(pid);
  (void)send(pid, Watching{});
  const ExitReason reason = co_await down_of(reference);
  (void)send(main, Ended{reason});
}

ExitReason wrong() { return ExitReason::tagged("wrong", Term(5)); }

/// Its init does what `how` says. With a witness, that one hears of the start and of the end.
class Starter {
 public:
  struct Args {
    How how = How::ok;
    Pid witness{};
  };
  explicit Starter(Args args) : args_(args) {}

  Async<Init> init() {
    if (args_.witness) {
      (void)otp::send(args_.witness, Born{self()});
      spawn(tell_end, self(), args_.witness);
      (void)co_await receive<Watching>();
    }
    switch (args_.how) {
      case How::ok: break;
      case How::slow: co_await otp::sleep(200ms); break;
      case How::stop: co_return otp::stop(wrong());
      case How::error: co_return otp::error(wrong());
      case How::ignore: co_return otp::ignore();
      case How::throws: throw std::runtime_error("no luck");
      case How::exits: otp::exit(wrong());
      case How::exits_normal: otp::exit(ExitReason::normal());
    }
    co_return otp::ok();
  }
  int handle_call(Get) { return 42; }
  void handle_cast(Crash) { otp::exit(wrong()); }

 private:
  Args args_;
};

Async<Result<Server<Starter>>> start_named(How how) {
  co_return co_await start<Starter>({.how = how, .witness = self()}, {.name = "starter"});
}

}  // namespace

TEST_CASE("GS-001 a start returns when init has returned, and the server answers", "[gs]") {
  simulate([]() -> Async<void> {
    const Duration before = now();
    auto linked = (co_await start_link<Starter>({.how = How::slow})).or_exit();
    require(now() - before == 200ms, "start_link did not wait for init");
    require(co_await call(linked, Get{}, {.timeout = 1ms}) == 42, "the answer");
    require(now() - before == 200ms, "the answer came late");
    auto server = (co_await start<Starter>({.how = How::slow})).or_exit();
    require(now() - before == 400ms, "start did not wait for init");
    co_await otp::stop(server);
    co_await otp::stop(linked);
  });
}

TEST_CASE("GS-002 a stop in init fails the start when the process and its name are gone", "[gs]") {
  everywhere([]() -> Async<void> {
    auto failed = co_await start_named(How::stop);
    const bool named = whereis("starter").has_value();
    Pid pid = (co_await receive<Born>()).pid;
    require(!is_alive(pid) && !named, "something is left");
    require(!failed.ok() && !failed.ignored(), "it started");
    require_reason(failed.error(), "{wrong,5}");
    require_reason((co_await receive<Ended>()).reason, "{wrong,5}");
  });
}

TEST_CASE("GS-003 an exception or an exit in init is the error of the start", "[gs]") {
  everywhere([]() -> Async<void> {
    auto thrown = co_await start_named(How::throws);
    require(!whereis("starter"), "the name is left");
    require_equal(first_of(thrown.error()).to_string(), "{std::runtime_error,\"no luck\"}");
    require(thrown.error().term().items().size() == 2, "a pair with a trace");
    require((co_await receive<Ended>()).reason == thrown.error(), "the reason of its end");
    auto exited = co_await start_named(How::exits);
    require(!whereis("starter"), "the name is left");
    require_reason(exited.error(), "{wrong,5}");
    require_reason((co_await receive<Ended>()).reason, "{wrong,5}");
    auto normal = co_await start_named(How::exits_normal);
    require(!normal.ok() && !normal.ignored(), "an exit with normal is a failed start");
    require_reason(normal.error(), "normal");
    require_reason((co_await receive<Ended>()).reason, "normal");
    for (int i = 0; i < 3; ++i) (void)co_await receive<Born>();
  });
}

TEST_CASE("GS-004 ignore in init is a result of its own and ends the process with normal", "[gs]") {
  everywhere([]() -> Async<void> {
    auto ignored = co_await start_named(How::ignore);
    require(ignored.ignored() && !ignored.ok(), "not ignored");
    require(!whereis("starter"), "the name is left");
    require_reason((co_await receive<Ended>()).reason, "normal");
    // Linked, from a process that does not trap: it lives on.
    auto linked = co_await start_link<Starter>({.how = How::ignore, .witness = self()});
    require(linked.ignored(), "not ignored");
    require_reason((co_await receive<Ended>()).reason, "normal");
    require(link_count() == 0, "a link is left");
    for (int i = 0; i < 2; ++i) (void)co_await receive<Born>();
  });
}

TEST_CASE("GS-005 what is no result of init cannot be returned from it", "[gs]") {
  // The compiler's words are checked in tests/diagnostics.
  STATIC_REQUIRE(!std::is_constructible_v<Init, int>);
  STATIC_REQUIRE(!std::is_constructible_v<Init, ExitReason>);
  STATIC_REQUIRE(!std::is_constructible_v<Init, CastResult>);
  STATIC_REQUIRE(!std::is_constructible_v<Init, CallResult<int>>);
  STATIC_REQUIRE(std::is_constructible_v<Init, Stop>);
}

TEST_CASE("GS-006 an error in init ends the process with normal, and nothing is logged", "[gs]") {
  everywhere(
      []() -> Async<void> {
        auto failed = co_await start_link<Starter>({.how = How::error, .witness = self()});
        require_reason(failed.error(), "{wrong,5}");
        require_reason((co_await receive<Ended>()).reason, "normal");
        require(link_count() == 0, "a link is left");
        require(logged().empty(), "something was logged");
        (void)co_await receive<Born>();
      },
      kRounds, Log::kept);
}

TEST_CASE("GS-007 a stop in init ends a linked caller that does not trap", "[gs]") {
  everywhere([]() -> Async<void> {
    const ExitReason stopped = co_await end_of([]() -> Async<void> {
      (void)co_await start_link<Starter>({.how = How::stop});
      co_await wait_for_ever();
    });
    require_reason(stopped, "{wrong,5}");
    const ExitReason thrown = co_await end_of([]() -> Async<void> {
      (void)co_await start_link<Starter>({.how = How::throws});
      co_await wait_for_ever();
    });
    require_equal(first_of(thrown).to_string(), "{std::runtime_error,\"no luck\"}");
    // One that traps gets the result and no EXIT besides it.
    trap_exit(true);
    auto failed = co_await start_link<Starter>({.how = How::stop});
    require_reason(failed.error(), "{wrong,5}");
    co_await require_silence();
  });
}

TEST_CASE("GS-008 a start under a taken name says who has it and runs no init", "[gs]") {
  everywhere([]() -> Async<void> {
    auto first = (co_await start<Starter>({}, {.name = "starter"})).or_exit();
    auto second = co_await start_link<Starter>({.witness = self()}, {.name = "starter"});
    require_reason(second.error(), "{already_started," + first.pid().to_string() + "}");
    require(link_count() == 0, "linked to the one that was there");
    co_await require_silence();
    require(whereis("starter") == first.pid(), "the name went away");
    co_await otp::stop(first);
  });
}

TEST_CASE("GS-009 the name of a server that crashed is free once its end is told", "[gs]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    for (int i = 0; i < 10; ++i) {
      auto server = i % 2 == 0 ? co_await start_link<Starter>({}, {.name = "starter"})
                               : co_await start<Starter>({}, {.name = "starter"});
      require(server.ok(), server.ok() ? "" : server.error().to_string());
      if (i % 2 == 1) monitor(server.value().pid());
      (void)cast(server.value(), Crash{});
      (void)co_await receive<ExitMessage, Down>();
    }
    co_await require_silence();
  });
}

TEST_CASE("GS-010 a server is reached by its local name in every way", "[gs]") {
  everywhere([]() -> Async<void> {
    auto started = (co_await start<Starter>({}, {.name = "starter"})).or_exit();
    const Name<Starter> name("starter");
    require(Server<Starter>(name).pid() == started.pid(), "the name leads elsewhere");
    require(co_await call(name, Get{}) == 42, "call");
    require((co_await try_call(name, Get{})).ok(), "try_call");
    auto twice = co_await start<Starter>({}, {.name = "starter"});
    require_reason(twice.error(), "{already_started," + started.pid().to_string() + "}");
    Reference reference = monitor(started.pid());
    (void)cast(name, Crash{});
    require_reason(co_await down_of(reference), "{wrong,5}");
    auto again = (co_await start<Starter>({}, {.name = "starter"})).or_exit();
    require(co_await call(name, Get{}) == 42, "the name leads to the next one");
    co_await otp::stop(Server<Starter>(name));
    require(!is_alive(again.pid()) && !whereis("starter"), "stop");
  });
}

TEST_CASE("GS-011 start makes no link, start_monitor one monitor from the start", "[gs]") {
  everywhere([]() -> Async<void> {
    auto plain = (co_await start<Starter>()).or_exit();
    require(link_count() == 0, "start made a link");
    (void)cast(plain, Crash{});
    co_await gone(plain.pid());
    auto monitored = (co_await start_monitor<Starter>()).or_exit();
    require(link_count() == 0, "start_monitor made a link");
    (void)cast(monitored.server, Crash{});
    Down down = co_await receive<Down>();
    require(down.reference == monitored.monitor && down.pid == monitored.server.pid(), "the DOWN");
    require_reason(down.reason, "{wrong,5}");
    for (How how : {How::stop, How::error, How::throws, How::ignore}) {
      auto failed = co_await start_monitor<Starter>({.how = how});
      require(!failed.ok(), "it started");
      require(!co_await receive<Down>(after(0s)), "a DOWN of a failed start");
    }
    co_await require_silence();
  });
}
