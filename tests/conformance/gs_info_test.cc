// Generic server: other messages, idle timeouts, continue.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Log {
  using Reply = std::vector<std::string>;
};
struct Called {
  using Reply = int;
  int number = 0;
};
struct Cast {
  int number = 0;
};
struct Tick {
  int number = 0;
};
struct Quiet {
  Duration time{};
};
struct QuietCall {
  using Reply = int;
  Duration time{};
};
struct Watch {
  using Reply = void;
  Pid pid{};
};
struct Load {
  int number = 0;
};
struct Unknown {};

enum class First : uint8_t { nothing, load, slow_load };

/// Writes down what it gets, in the order in which it gets it.
class Scribe {
 public:
  struct Args {
    First first = First::nothing;
    bool trap = false;
  };
  explicit Scribe(Args args) : first_(args.first) { trap_exit(args.trap); }
  Init init() {
    if (first_ == First::nothing) return otp::ok();
    (void)otp::send(self(), Tick{0});
    (void)cast(Server<Scribe>(self()), Cast{0});
    return otp::ok().then_continue(Load{first_ == First::slow_load ? 500 : 1});
  }

  std::vector<std::string> handle_call(Log) { return log_; }
  int handle_call(Called msg) {
    log_.push_back("call" + std::to_string(msg.number));
    return msg.number;
  }
  CallResult<int> handle_call(QuietCall msg) { return otp::reply(1).timeout(msg.time); }
  void handle_call(Watch msg) {
    monitor(msg.pid);
    link(msg.pid);
  }
  CastResult handle_cast(Cast msg) {
    log_.push_back("cast" + std::to_string(msg.number));
    if (msg.number == 100) return noreply().then_continue(Load{7});
    return noreply();
  }
  CastResult handle_cast(Quiet msg) { return noreply().timeout(msg.time); }
  void handle_info(Tick msg) { log_.push_back("tick" + std::to_string(msg.number)); }
  void handle_info(Down msg) {
    log_.push_back("down " + msg.pid.to_string() + " " + msg.reason.to_string());
  }
  void handle_info(ExitMessage msg) {
    log_.push_back("exit " + msg.from.to_string() + " " + msg.reason.to_string());
  }
  void handle_info(IdleTimeout) { log_.push_back("timeout"); }
  using Info = Protocol<Tick>;
  Async<void> handle_continue(Load msg) {
    if (msg.number >= 100) co_await otp::sleep(msg.number * 1ms);
    log_.push_back("load" + std::to_string(msg.number));
  }

 private:
  First first_;
  std::vector<std::string> log_;
};

/// Handles nothing but a call and a cast.
class Plain {
 public:
  int handle_call(Called) { return ++calls_; }
  void handle_cast(Cast) {}

 private:
  int calls_ = 0;
};

std::string joined(const std::vector<std::string>& log) {
  std::string text;
  for (const auto& line : log) text += (text.empty() ? "" : ", ") + line;
  return text;
}

Async<std::string> log_of(Server<Scribe> scribe) {
  const std::vector<std::string> log = co_await call(scribe, Log{});
  co_return joined(log);
}

Async<void> end_on_tick(ExitReason reason) {
  (void)co_await receive<Tick>();
  otp::exit(std::move(reason));
}

}  // namespace

TEST_CASE("GS-024 any other message reaches handle_info unchanged and in its place", "[gs]") {
  everywhere([]() -> Async<void> {
    auto scribe = (co_await start<Scribe>({.trap = true})).or_exit();
    (void)cast(scribe, Cast{1});
    (void)otp::send(scribe.pid(), Tick{2});
    (void)co_await call(scribe, Called{3});
    (void)otp::send(scribe, Tick{4});
    otp::exit(scribe.pid(), ExitReason::atom("foo"));
    (void)cast(scribe, Cast{5});
    require_equal(co_await log_of(scribe),
                  "cast1, tick2, call3, tick4, exit " + self().to_string() + " foo, cast5");
    co_await otp::stop(scribe);
  });
  everywhere([]() -> Async<void> {
    auto scribe = (co_await start<Scribe>({.trap = true})).or_exit();
    Pid other = spawn(end_on_tick, ExitReason::atom("bad"));
    co_await call(scribe, Watch{other});
    (void)otp::send(other, Tick{});
    co_await gone(other);
    // Its EXIT and its DOWN were sent before the DOWN that we have got.
    const std::string log = co_await log_of(scribe);
    require(log.find("exit " + other.to_string() + " bad") != std::string::npos, log);
    require(log.find("down " + other.to_string() + " bad") != std::string::npos, log);
    co_await otp::stop(scribe);
  });
  simulate(
      []() -> Async<void> {
        auto scribe = (co_await start<Scribe>()).or_exit();
        send_after(10ms, scribe.pid(), Tick{1});
        co_await otp::sleep(10ms);
        require_equal(co_await log_of(scribe), "tick1");
        co_await otp::stop(scribe);
      },
      kFewRounds);
}

TEST_CASE("GS-025 a message for which there is no handler is logged and the server goes on",
          "[gs]") {
  everywhere(
      []() -> Async<void> {
        auto plain = (co_await start<Plain>()).or_exit();
        require(co_await call(plain, Called{}) == 1, "one");
        require(logged().empty(), "logged too early");
        (void)otp::send(plain.pid(), Unknown{});
        require(co_await call(plain, Called{}) == 2, "its state is what it was");
        const std::vector<std::string> lines = logged();
        require(lines.size() == 1, "not one line: " + joined(lines));
        require(lines[0].find("warning") == 0, lines[0]);
        require(lines[0].find("Unknown") != std::string::npos, lines[0]);
        co_await otp::stop(plain);
      },
      kRounds, otp::testing::Log::kept);
}

TEST_CASE("GS-035 an idle timeout is told once", "[gs]") {
  simulate(
      []() -> Async<void> {
        auto scribe = (co_await start<Scribe>()).or_exit();
        (void)cast(scribe, Quiet{50ms});
        co_await otp::sleep(49ms);
        co_await otp::sleep(2ms);
        require_equal(co_await log_of(scribe), "timeout");
        co_await otp::sleep(10s);
        require_equal(co_await log_of(scribe), "timeout");
        (void)co_await call(scribe, QuietCall{50ms});
        co_await otp::sleep(10s);
        require_equal(co_await log_of(scribe), "timeout, timeout");
        co_await otp::stop(scribe);
      },
      kFewRounds);
  on_threads([]() -> Async<void> {
    auto scribe = (co_await start<Scribe>()).or_exit();
    (void)cast(scribe, Quiet{0ms});
    std::string log;
    while (log.empty()) {
      // Each look is a message and would end the timeout, so it is asked for anew.
      (void)cast(scribe, Quiet{0ms});
      co_await otp::sleep(20us);
      log = co_await log_of(scribe);
    }
    require(log.find("timeout") == 0, log);
    co_await otp::stop(scribe);
  });
}

TEST_CASE("GS-036 any message ends an idle timeout", "[gs]") {
  simulate(
      []() -> Async<void> {
        auto scribe = (co_await start<Scribe>()).or_exit();
        for (int kind = 0; kind < 3; ++kind) {
          (void)cast(scribe, Quiet{50ms});
          co_await otp::sleep(20ms);
          if (kind == 0) (void)cast(scribe, Cast{1});
          if (kind == 1) (void)co_await call(scribe, Called{2});
          if (kind == 2) (void)otp::send(scribe.pid(), Tick{3});
          co_await otp::sleep(10s);
        }
        require_equal(co_await log_of(scribe), "cast1, call2, tick3");
        co_await otp::stop(scribe);
      },
      kFewRounds);
  everywhere([]() -> Async<void> {
    // What is queued already is handled; the timeout of zero is gone with it.
    auto scribe = (co_await start<Scribe>()).or_exit();
    (void)cast(scribe, Quiet{1h});
    (void)cast(scribe, Cast{1});
    require_equal(co_await log_of(scribe), "cast1");
    co_await otp::stop(scribe);
  });
}

TEST_CASE("GS-037 a continue comes before every queued message", "[gs]") {
  everywhere([]() -> Async<void> {
    // Before what init sent to itself.
    auto scribe = (co_await start<Scribe>({.first = First::load})).or_exit();
    require_equal(co_await log_of(scribe), "load1, tick0, cast0");
    // Before what came while the handler ran.
    (void)cast(scribe, Cast{100});
    (void)cast(scribe, Cast{101});
    require_equal(co_await log_of(scribe), "load1, tick0, cast0, cast100, load7, cast101");
    co_await otp::stop(scribe);
  });
}

TEST_CASE("GS-038 a start does not wait for the continue, a call does", "[gs]") {
  simulate(
      []() -> Async<void> {
        const Duration before = now();
        auto scribe = (co_await start_link<Scribe>({.first = First::slow_load})).or_exit();
        require(now() == before, "the start waited");
        require(co_await call(scribe, Called{1}) == 1, "the answer");
        require(now() - before == 500ms, "the call did not wait for the continue");
        require_equal(co_await log_of(scribe), "load500, tick0, cast0, call1");
        co_await otp::stop(scribe);
      },
      kRounds);
}
