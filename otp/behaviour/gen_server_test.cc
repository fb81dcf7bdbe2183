#include "otp/behaviour/gen_server.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

struct Increment {
  using Reply = int64_t;
  int64_t by = 1;
};
struct Get {
  using Reply = int64_t;
};
struct Reset {};
struct Crash {};
struct CrashInCall {
  using Reply = void;
};
struct Slow {
  using Reply = std::string;
  Duration time = 100ms;
};
struct Later {
  using Reply = int;
};
struct Answer {
  int value = 0;
};
struct StopWith {
  using Reply = std::string;
  std::string atom;
  bool answer = false;
};
struct Idle {};
struct Tick {
  int n = 0;
};
struct Loaded {
  int n = 0;
};
struct Log {
  using Reply = std::vector<std::string>;
};
struct CallYourself {
  using Reply = int64_t;
};

class Counter {
 public:
  struct Args {
    int64_t start = 0;
    std::string fail{};
    Pid witness{};
    bool trap = false;
  };

  explicit Counter(Args args) : count_(args.start), witness_(args.witness) {
    if (args.fail == "throw") throw std::runtime_error("no luck");
    fail_ = args.fail;
    trap_exit(args.trap);
  }
  Async<Init> init() {
    if (fail_ == "stop") co_return otp::stop(ExitReason::atom("stopped"));
    if (fail_ == "error") co_return otp::error(ExitReason::atom("wrong"));
    if (fail_ == "ignore") co_return otp::ignore();
    if (fail_ == "slow") co_await otp::sleep(200ms);
    if (fail_ == "continue") co_return otp::ok().then_continue(Loaded{3});
    co_return otp::ok();
  }

  int64_t handle_call(Increment msg) { return count_ += msg.by; }
  int64_t handle_call(Get) { return count_; }
  void handle_call(CrashInCall) { throw std::runtime_error("in call"); }
  Async<std::string> handle_call(Slow msg) {
    co_await otp::sleep(msg.time);
    co_return "slept";
  }
  CallResult<int> handle_call(Later, From<int> from) {
    waiting_ = from;
    return otp::noreply();
  }
  CallResult<std::string> handle_call(StopWith msg) {
    ExitReason reason{Term::atom(msg.atom)};
    if (msg.answer) return otp::stop(reason, std::string("bye"));
    return otp::stop(reason);
  }
  std::vector<std::string> handle_call(Log) { return log_; }
  Async<int64_t> handle_call(CallYourself) {
    co_return co_await otp::call(Server<Counter>(self()), Get{});
  }
  void handle_cast(Reset) { count_ = 0; }
  void handle_cast(Crash) { throw std::runtime_error("boom"); }
  void handle_cast(Answer msg) { otp::reply(waiting_, msg.value); }
  CastResult handle_cast(Idle) { return otp::noreply().timeout(50ms); }
  void handle_info(IdleTimeout) { log_.push_back("idle"); }
  void handle_info(Tick tick) { log_.push_back("tick" + std::to_string(tick.n)); }
  void handle_info(Down) { log_.push_back("down"); }
  void handle_info(ExitMessage m) { log_.push_back("exit " + m.reason.to_string()); }
  using Info = Protocol<Tick>;
  void handle_continue(Loaded loaded) { count_ += loaded.n; }
  void terminate(ExitReason reason) {
    if (witness_) (void)otp::send(witness_, ExitMessage{self(), std::move(reason)});
  }

 private:
  int64_t count_;
  Pid witness_;
  std::string fail_;
  From<int> waiting_;
  std::vector<std::string> log_;
};

void simulate(Async<void> (*test)()) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed);
    simulator.run(test);
  }
}
void everywhere(Async<void> (*test)()) {
  simulate(test);
  SystemOptions options;
  options.cores = 2;
  System system(options);
  for (int round = 0; round < 30; ++round) system.run(test);
}
void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}
Async<ExitReason> down_of(Pid pid) {
  Reference ref = monitor(pid);
  Down down = co_await receive<Down>([ref](const Down& d) { return d.reference == ref; });
  co_return down.reason;
}

}  // namespace

TEST_CASE("a server's handlers are plain functions", "[gen_server]") {
  Counter* none = nullptr;
  CHECK(none == nullptr);
  struct Plain {
    int64_t handle_call(Increment msg) { return n += msg.by; }
    int64_t n = 40;
  } plain;
  CHECK(plain.handle_call(Increment{.by = 2}) == 42);
}

TEST_CASE("calls and casts of one client are handled in order", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>({.start = 40})).or_exit();
    require(co_await call(counter, Increment{.by = 2}) == 42, "increment");
    for (int i = 0; i < 100; ++i) (void)cast(counter, Reset{});
    (void)cast(counter, Reset{});
    require(co_await call(counter, Get{}) == 0, "GS-023 casts before the call");
  });
}

TEST_CASE("GS-002 GS-003 GS-004 GS-006 a start that fails says why", "[gen_server]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    for (std::string fail : {"throw", "stop", "error", "ignore"}) {
      auto failed = co_await start_link<Counter>({.fail = fail}, {.name = "counter"});
      require(!failed.ok(), fail);
      require(failed.ignored() == (fail == "ignore"), fail);
      require(!whereis("counter"), "the name is free after " + fail);
      if (fail == "throw") {
        require(failed.error().to_string().find("{{std::runtime_error,\"no luck\"}") == 0,
                failed.error().to_string());
      }
      if (fail == "stop") require(failed.error().is("stopped"), fail);
      if (fail == "error") require(failed.error().is("wrong"), fail);
      require(!co_await receive<ExitMessage>(after(0s)), "nothing is left of a failed start");
    }
  });
}

TEST_CASE("GS-007 stop in init ends a linked starter that does not trap", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto [pid, ref] = spawn_monitor([]() -> Async<void> {
      (void)co_await start_link<Counter>({.fail = "stop"});
      co_await otp::sleep(infinity);
    });
    Down down = co_await receive<Down>();
    require(down.reference == ref && down.reason.is("stopped"), down.reason.to_string());
  });
}

TEST_CASE("GS-008 a taken name refuses the start", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto first = (co_await start_link<Counter>({}, {.name = "counter"})).or_exit();
    auto second = co_await start_link<Counter>({.fail = "throw"}, {.name = "counter"});
    require(!second.ok(), "started twice");
    require(second.error().term().items().at(1).pid() == first.pid(), second.error().to_string());
    Name<Counter> name("counter");
    require(co_await call(name, Increment{}) == 1, "by name");
    co_await otp::stop(first);
    require(!whereis("counter"), "GS-039 the name is free after stop");
  });
}

TEST_CASE("a start that takes too long is undone", "[gen_server]") {
  simulate([]() -> Async<void> {
    auto slow = co_await start_link<Counter>({.fail = "slow"}, {.name = "slow", .timeout = 50ms});
    require(slow.error().is("timeout"), slow.error().to_string());
    require(!whereis("slow"), "R-001 the name is free");
    auto in_time =
        co_await start_link<Counter>({.fail = "slow"}, {.name = "slow", .timeout = 300ms});
    require(in_time.ok(), "GS-001");
  });
}

TEST_CASE("GS-014 GS-015 a call that times out leaves nothing behind", "[gen_server]") {
  simulate([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>()).or_exit();
    auto late = co_await try_call(counter, Slow{.time = 10s});
    require(late.error().is("timeout"), "GS-013");
    try {
      co_await call(counter, Get{}, {.timeout = 1s});
      require(false, "answered");
    } catch (const Exit& exit) {
      require(exit.reason().term().items().at(0).is_atom("timeout"), exit.what());
    }
    co_await otp::sleep(20s);
    require(co_await call(counter, Get{}) == 0, "it goes on");
  });
}

TEST_CASE("GS-016 GS-017 a server that ends or is gone answers at once", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start<Counter>()).or_exit();
    auto crashed = co_await try_call(counter, CrashInCall{});
    require(crashed.error().to_string().find("in call") != std::string::npos, "reason");
    require((co_await try_call(counter, Get{})).error().is("noproc"), "noproc");
    require((co_await try_call(Name<Counter>("nobody"), Get{})).error().is("noproc"), "no name");
  });
}

TEST_CASE("GS-016 a call that is queued or kept gets the reason", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start<Counter>()).or_exit();
    Pid main = self();
    spawn(
        [](Server<Counter> to, Pid tell) -> Async<void> {
          auto result = co_await try_call(to, Later{}, {.timeout = infinity});
          (void)otp::send(tell, ExitMessage{self(), result.error()});
        },
        counter, main);
    co_await yield();
    co_await call(counter, Get{});
    otp::exit(counter.pid(), ExitReason::atom("away"));
    auto told = co_await receive<Tick, Down>(after(0s));
    require(!told, "nothing else");
  });
}

TEST_CASE("GS-018 a server that calls itself is told so", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start<Counter>()).or_exit();
    auto result = co_await try_call(counter, CallYourself{});
    require(result.error().to_string().find("calling_self") != std::string::npos,
            result.error().to_string());
  });
}

TEST_CASE("GS-020 an answer may come later", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>()).or_exit();
    Pid main = self();
    spawn_link(
        [](Server<Counter> to, Pid tell) -> Async<void> {
          int value = co_await call(to, Later{});
          (void)otp::send(tell, Tick{value});
        },
        counter, main);
    while (co_await call(counter, Get{}) < 50) co_await call(counter, Increment{});
    (void)cast(counter, Answer{7});
    // The caller may not have asked yet in this interleaving: then the answer went nowhere, ask
    // again.
    for (;;) {
      auto tick = co_await receive<Tick>(after(10ms));
      if (tick) {
        require(tick->n == 7, "value");
        break;
      }
      (void)cast(counter, Answer{7});
    }
  });
}

TEST_CASE("GS-027 stop with and without a reply", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto a = (co_await start<Counter>()).or_exit();
    require(co_await call(a, StopWith{.atom = "done", .answer = true}) == "bye", "reply");
    require((co_await down_of(a.pid())).is_abnormal(), "gone");
    auto b = (co_await start<Counter>()).or_exit();
    auto none = co_await try_call(b, StopWith{.atom = "done"});
    require(none.error().is("done"), none.error().to_string());
  });
}

TEST_CASE("GS-032 GS-033 exits of the parent and of others", "[gen_server]") {
  everywhere([]() -> Async<void> {
    struct Quit {};
    Pid parent = spawn(
        [](Pid main) -> Async<void> {
          auto counter = (co_await start_link<Counter>({.witness = main, .trap = true})).or_exit();
          (void)otp::send(main, Tick{1});
          (void)otp::send(main, counter.pid());
          co_await receive<Quit>();
          otp::exit(ExitReason::atom("parent_gone"));
        },
        self());
    co_await receive<Tick>();
    Pid pid = co_await receive<Pid>();
    otp::exit(pid, ExitReason::atom("foo"));
    Server<Counter> counter(pid);
    auto log = co_await call(counter, Log{});
    require(log == std::vector<std::string>{"exit foo"}, "handle_info");
    (void)otp::send(parent, Quit{});
    require((co_await down_of(pid)).to_string().size() > 0, "ended");
  });
}

TEST_CASE("GS-035 GS-036 an idle timeout fires once and any message ends it", "[gen_server]") {
  simulate([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>()).or_exit();
    (void)cast(counter, Idle{});
    co_await otp::sleep(500ms);
    require((co_await call(counter, Log{})).size() == 1, "once");
    (void)cast(counter, Idle{});
    co_await otp::sleep(20ms);
    require((co_await call(counter, Log{})).size() == 1, "not yet");
    co_await otp::sleep(500ms);
    require((co_await call(counter, Log{})).size() == 1, "the message ended it");
  });
}

TEST_CASE("GS-037 continue comes before queued messages", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>({.fail = "continue"})).or_exit();
    require(co_await call(counter, Get{}) == 3, "continue");
  });
}

TEST_CASE("GS-024 typed and untyped messages reach handle_info", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>()).or_exit();
    (void)otp::send(counter, Tick{1});
    (void)otp::send(counter.pid(), Tick{2});
    send_after(0ms, counter.pid(), Tick{3});
    co_await otp::sleep(5ms);
    auto log = co_await call(counter, Log{});
    require(log == std::vector<std::string>{"tick1", "tick2", "tick3"}, "all three");
  });
}

TEST_CASE("GS-012 many clients, each gets its own reply", "[gen_server]") {
  everywhere([]() -> Async<void> {
    auto counter = (co_await start_link<Counter>()).or_exit();
    for (int i = 0; i < 20; ++i) {
      spawn_link(
          [](Server<Counter> to, Pid main) -> Async<void> {
            int64_t last = 0;
            for (int k = 0; k < 20; ++k) {
              int64_t now = co_await call(to, Increment{});
              if (now <= last) otp::exit(ExitReason::atom("went_back"));
              last = now;
            }
            (void)otp::send(main, Tick{});
          },
          counter, self());
    }
    for (int i = 0; i < 20; ++i) co_await receive<Tick>();
    require(co_await call(counter, Get{}) == 400, "all counted");
  });
}
