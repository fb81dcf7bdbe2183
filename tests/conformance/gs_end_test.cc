// Generic server: how it ends.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Get {
  using Reply = int;
};
struct StopCast {
  ExitReason reason;
};
struct StopInfo {
  ExitReason reason;
};
struct Set {
  int number = 0;
  bool then_throw = false;
};
struct SetInCall {
  using Reply = int;
  int number = 0;
};
struct StopYourself {
  using Reply = std::string;
};
struct LinkTo {
  using Reply = void;
  Pid pid;
};
struct Quit {};
/// What the server told its witness: "terminate", the reason, its number.
struct Told {
  std::string what;
  ExitReason reason{};
  int number = 0;
};

enum class InTerminate : uint8_t { nothing, throws, exits, waits };

class Ender {
 public:
  struct Args {
    Pid witness{};
    bool trap = false;
    InTerminate in_terminate = InTerminate::nothing;
  };
  explicit Ender(Args args) : args_(args) { trap_exit(args.trap); }

  int handle_call(Get) { return number_; }
  Async<int> handle_call(SetInCall msg) {
    number_ = msg.number;
    co_await yield();
    throw std::logic_error("in the call");
  }
  Async<std::string> handle_call(StopYourself) {
    std::string reason;
    try {
      co_await otp::stop(self());
    } catch (const Exit& exit) {
      reason = exit.reason().to_string();
    }
    co_return reason;
  }
  void handle_call(LinkTo msg) { link(msg.pid); }
  CastResult handle_cast(StopCast msg) { return otp::stop(std::move(msg.reason)); }
  void handle_cast(Set msg) {
    number_ = msg.number;
    if (msg.then_throw) throw std::runtime_error("in the cast");
  }
  CastResult handle_info(StopInfo msg) { return otp::stop(std::move(msg.reason)); }
  void handle_info(ExitMessage msg) { tell("exit", msg.reason); }
  using Info = Protocol<StopInfo>;

  Async<void> terminate(ExitReason reason) {
    tell("terminate", reason);
    switch (args_.in_terminate) {
      case InTerminate::nothing: break;
      case InTerminate::throws: throw std::runtime_error("in terminate");
      case InTerminate::exits: otp::exit(ExitReason::atom("other"));
      case InTerminate::waits: co_await otp::sleep(300ms);
    }
  }

 private:
  void tell(std::string what, const ExitReason& reason) {
    if (args_.witness) (void)otp::send(args_.witness, Told{std::move(what), reason, number_});
  }
  Args args_;
  int number_ = 0;
};

Async<Server<Ender>> start_ender(Ender::Args args = {}) {
  args.witness = self();
  co_return (co_await start<Ender>(args, {.name = "ender"})).or_exit();
}

ExitReason detailed() { return ExitReason::tagged("broken", Term("pipe")); }

/// The next thing the server told, which must be its terminate.
Async<Told> terminated() {
  Told told = co_await receive<Told>();
  require_equal(told.what, "terminate");
  co_return told;
}

std::string exception(const ExitReason& reason) { return first_of(reason).to_string(); }

}  // namespace

TEST_CASE("GS-026 a stop in handle_cast or handle_info runs terminate and is the reason", "[gs]") {
  everywhere([]() -> Async<void> {
    for (const ExitReason& reason : {detailed(), ExitReason::normal(), ExitReason::shutdown()}) {
      for (const bool by_cast : {true, false}) {
        auto server = co_await start_ender();
        Reference reference = monitor(server.pid());
        (void)cast(server, Set{5});
        if (by_cast) {
          (void)cast(server, StopCast{reason});
        } else {
          (void)otp::send(server.pid(), StopInfo{reason});
        }
        const Told told = co_await terminated();
        require(told.reason == reason && told.number == 5, told.reason.to_string());
        const ExitReason ended = co_await down_of(reference);
        require(ended == reason, ended.to_string());
      }
    }
    co_await require_silence();
  });
}

TEST_CASE("GS-028 what is no result of a handler cannot be returned from it", "[gs]") {
  // The compiler's words are checked in tests/diagnostics.
  STATIC_REQUIRE(!std::is_constructible_v<CallResult<int>, std::string>);
  STATIC_REQUIRE(!std::is_constructible_v<CallResult<std::string>, Init>);
  STATIC_REQUIRE(!std::is_constructible_v<CastResult, int>);
  STATIC_REQUIRE(!std::is_constructible_v<CastResult, CallResult<int>>);
  STATIC_REQUIRE(std::is_constructible_v<CallResult<int>, CastResult>);
  // What only the run can tell, a continue for which there is no handler, ends the server.
  struct Continues {
    CastResult handle_cast(Quit) { return noreply().then_continue(Quit{}); }
  };
  everywhere([]() -> Async<void> {
    auto server = (co_await start<Continues>()).or_exit();
    Reference reference = monitor(server.pid());
    (void)cast(server, Quit{});
    const ExitReason reason = co_await down_of(reference);
    require(reason.to_string().find("{no_handle_continue,") == 0, reason.to_string());
  });
}

TEST_CASE("GS-029 an exception ends the server, terminate first, with it as the reason", "[gs]") {
  everywhere([]() -> Async<void> {
    const char* const in_cast = "{std::runtime_error,\"in the cast\"}";
    auto server = co_await start_ender();
    Reference reference = monitor(server.pid());
    (void)cast(server, Set{1});
    (void)cast(server, Set{2, true});
    Told told = co_await terminated();
    require_equal(exception(told.reason), in_cast);
    require(told.number == 2, "the state as the handler left it");
    const ExitReason reason = co_await down_of(reference);
    require(reason == told.reason && reason.term().items().size() == 2, reason.to_string());
    // In a call that waits; its caller hears it too.
    auto second = co_await start_ender();
    reference = monitor(second.pid());
    auto result = co_await try_call(second, SetInCall{3});
    require_equal(exception(result.error()), "{std::logic_error,\"in the call\"}");
    told = co_await terminated();
    require(told.reason == result.error() && told.number == 3, told.reason.to_string());
    require(co_await down_of(reference) == told.reason, "the end");
    co_await require_silence();
  });
}

TEST_CASE("GS-030 what leaves terminate is the reason in the end", "[gs]") {
  everywhere([]() -> Async<void> {
    auto throws = co_await start_ender({.in_terminate = InTerminate::throws});
    Reference reference = monitor(throws.pid());
    (void)cast(throws, StopCast{detailed()});
    require((co_await terminated()).reason == detailed(), "terminate gets the first");
    require_equal(exception(co_await down_of(reference)), "{std::runtime_error,\"in terminate\"}");
    auto exits = co_await start_ender({.in_terminate = InTerminate::exits});
    reference = monitor(exits.pid());
    (void)cast(exits, StopCast{ExitReason::normal()});
    require((co_await terminated()).reason.is_normal(), "terminate gets the first");
    require_reason(co_await down_of(reference), "other");
    co_await require_silence();
  });
}

TEST_CASE("GS-031 a server that does not trap ends without terminate", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender();
    Reference reference = monitor(server.pid());
    otp::exit(server.pid(), detailed());
    require(co_await down_of(reference) == detailed(), "by an exit signal");
    auto linked = co_await start_ender();
    reference = monitor(linked.pid());
    Pid other = spawn(wait_for_ever);
    co_await call(linked, LinkTo{other});
    otp::exit(other, detailed());
    require(co_await down_of(reference) == detailed(), "by a link");
    co_await require_silence();
  });
}

TEST_CASE("GS-032 a server that traps stops with its parent, terminate first", "[gs]") {
  everywhere([]() -> Async<void> {
    for (const ExitReason& reason : {detailed(), ExitReason::normal(), ExitReason::shutdown()}) {
      Pid parent = spawn(
          [](Pid main, ExitReason why) -> Async<void> {
            auto server = (co_await start_link<Ender>({.witness = main, .trap = true})).or_exit();
            (void)otp::send(main, server.pid());
            (void)co_await receive<Quit>();
            otp::exit(std::move(why));
          },
          self(), reason);
      Pid server = co_await receive<Pid>();
      Reference reference = monitor(server);
      (void)otp::send(parent, Quit{});
      require((co_await terminated()).reason == reason, "what terminate got");
      const ExitReason ended = co_await down_of(reference);
      require(ended == reason, ended.to_string());
    }
    co_await require_silence();
  });
}

TEST_CASE("GS-033 other exits are messages for a server that traps", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender({.trap = true});
    otp::exit(server.pid(), ExitReason::atom("foo"));
    Told told = co_await receive<Told>();
    require(told.what == "exit" && told.reason.is("foo"), told.what);
    Pid other = spawn(wait_for_ever);
    co_await call(server, LinkTo{other});
    otp::exit(other, detailed());
    told = co_await receive<Told>();
    require(told.what == "exit" && told.reason == detailed(), told.what);
    require(co_await call(server, Get{}) == 0, "it lives");
    co_await end(server.pid());
    co_await require_silence();
  });
}

TEST_CASE("GS-034 kill ends a server that traps with killed and without terminate", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender({.trap = true});
    Reference reference = monitor(server.pid());
    otp::exit(server.pid(), ExitReason::kill());
    require_reason(co_await down_of(reference), "killed");
    co_await require_silence();
  });
}

TEST_CASE("GS-039 stop returns when terminate has run and the name is free", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender();
    co_await otp::stop(server);
    require(!whereis("ender") && !is_alive(server.pid()), "something is left");
    auto told = co_await receive<Told>(after(0s));
    require(told && told->what == "terminate" && told->reason.is_normal(), "terminate with normal");
    auto second = co_await start_ender();
    co_await otp::stop(second, ExitReason::shutdown());
    require((co_await terminated()).reason.is_shutdown(), "terminate with shutdown");
  });
  simulate(
      []() -> Async<void> {
        auto server = co_await start_ender({.in_terminate = InTerminate::waits});
        const Duration before = now();
        co_await otp::stop(Server<Ender>(Name<Ender>("ender")));
        require(now() - before == 300ms, "it did not wait for terminate");
        (void)co_await terminated();
      },
      kFewRounds);
}

TEST_CASE("GS-040 what is queued before a stop is handled before it", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender();
    (void)cast(server, Set{1});
    (void)cast(server, Set{2});
    co_await otp::stop(server);
    const Told told = co_await terminated();
    require(told.number == 2, "handled up to " + std::to_string(told.number));
  });
}

TEST_CASE("GS-041 a stop of a server that is gone exits with noproc", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender();
    co_await otp::stop(server);
    (void)co_await terminated();
    for (const Server<Ender>& each :
         {server, Server<Ender>(Name<Ender>("ender")), Server<Ender>()}) {
      std::string reason;
      try {
        co_await otp::stop(each);
      } catch (const Exit& exit) {
        reason = exit.reason().to_string();
      }
      require_equal(reason, "noproc");
    }
    co_await require_silence();
  });
}

TEST_CASE("GS-042 a server that stops itself through stop is told calling_self", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_ender();
    require_equal(co_await call(server, StopYourself{}), "calling_self");
    co_await otp::stop(server);
    (void)co_await terminated();
  });
}
