// The examples of docs/testing.md, word for word (examples_test.py compares), and what the tools
// say when something fails.

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <string>

#include "otp/testing/test.h"

using namespace std::chrono_literals;

namespace {

class Counter {
 public:
  struct Args {
    int start = 0;
  };
  struct Increment {
    using Reply = int;
    int by = 1;
  };
  static auto increment(otp::Server<Counter> counter, int by) {
    return otp::call(counter, Increment{.by = by});
  }
  explicit Counter(Args args) : count_(args.start) {}
  int handle_call(Increment message) { return count_ += message.by; }

 private:
  int count_;
};

struct Tick {
  int number = 0;
};

class Clock {
 public:
  struct Args {
    std::chrono::seconds every{1};
    otp::Pid listener{};
  };
  struct Again {};
  using Info = otp::Protocol<Again>;
  explicit Clock(Args args) : args_(args) { arm(); }
  void handle_info(Again) {
    (void)otp::send(args_.listener, Tick{++number_});
    arm();
  }

 private:
  void arm() { (void)otp::send_after(args_.every, otp::self(), Again{}); }
  Args args_;
  int number_ = 0;
};

}  // namespace

TEST_CASE("a counter that crashes begins anew", "[testing]") {
  otp::test::in_simulator([]() -> otp::Async<void> {
    otp::ChildOptions named{.name = "counter"};
    auto first = co_await otp::test::start_supervised<Counter>({.start = 5}, named);
    otp::exit(first.pid(), otp::ExitReason::kill());
    otp::ExitReason reason = co_await otp::test::expect_down(first.pid());
    otp::test::expect(reason.is("killed"), "killed, not " + reason.to_string());
    (void)co_await otp::test::stop_supervised<Counter>();
    otp::test::expect(!otp::whereis("counter"), "stopped for good");
  });
}

TEST_CASE("a clock ticks every second, and not in between", "[testing]") {
  otp::test::in_simulator([]() -> otp::Async<void> {
    otp::Pid test = otp::self();
    (void)co_await otp::test::start_supervised<Clock>({.every = 1s, .listener = test});
    Tick tick = co_await otp::test::expect_receive<Tick>(1500ms);
    otp::test::expect(tick.number == 1, "the first");
    co_await otp::test::refute_receive<Tick>(999ms);
    auto third = [](const Tick& each) { return each.number == 3; };
    (void)co_await otp::test::expect_receive<Tick>(third, 2s);
    (void)otp::test::flush();
  });
}

TEST_CASE("a counter counts on threads too", "[testing]") {
  otp::test::on_threads([]() -> otp::Async<void> {
    auto counter = co_await otp::test::start_supervised<Counter>({});
    (void)co_await Counter::increment(counter, 1);
  });
}

namespace {

/// What a body that must fail fails with, in the Simulator and on threads without their own words.
std::string failure_of(const otp::test::Body& body) {
  std::string first, second;
  try {
    otp::test::in_simulator(body, 3);
  } catch (const otp::test::Failed& failed) {
    first = failed.what();
  }
  try {
    otp::test::on_threads(body, 1);
  } catch (const otp::test::Failed& failed) {
    second = failed.what();
  }
  CHECK(first.rfind("seed 1 (OTP_SEED=1 replays it): ", 0) == 0);
  CHECK(second.rfind("round 1 on threads: ", 0) == 0);
  CHECK(first.substr(first.find(": ")) == second.substr(second.find(": ")));
  return first.substr(first.find(": ") + 2);
}

}  // namespace

TEST_CASE("a failure says what was expected and what is there", "[testing]") {
  CHECK(failure_of([]() -> otp::Async<void> {
          otp::test::expect(false, "a miracle");
          co_return;
        }) == "expected: a miracle");
  CHECK(failure_of([]() -> otp::Async<void> {
          (void)otp::send(otp::self(), 5);
          (void)co_await otp::test::expect_receive<Tick>(5ms);
        }).find("Tick within 5 ms; the mailbox holds int") != std::string::npos);
  CHECK(failure_of([]() -> otp::Async<void> {
          (void)co_await otp::test::expect_receive<int>(0s);
        }) == "no int within 0 ms; the mailbox is empty");
  CHECK(failure_of([]() -> otp::Async<void> {
          (void)otp::send(otp::self(), 5);
          co_await otp::test::refute_receive<int>(1ms);
        }) == "a message of type int");
  CHECK(failure_of([]() -> otp::Async<void> {
          otp::Pid pid = otp::spawn([]() -> otp::Async<void> { co_await otp::sleep(1h); });
          (void)co_await otp::test::expect_down(pid, 5ms);
        }).find("lives on after 5 ms") != std::string::npos);
  CHECK(failure_of([]() -> otp::Async<void> {
          (void)co_await otp::test::start_supervised<Counter>();
          (void)co_await otp::test::start_supervised<Counter>();
        }).find("Counter does not start: {already_started,") != std::string::npos);
}

TEST_CASE("a seed in the environment runs alone, and has to be a number", "[testing]") {
  const auto rounds_with = [](const char* seed) {
    setenv("OTP_SEED", seed, 1);
    int rounds = 0;
    std::string failure;
    try {
      otp::test::in_simulator([&rounds]() -> otp::Async<void> {
        ++rounds;
        co_return;
      });
    } catch (const otp::test::Failed& failed) {
      failure = failed.what();
    }
    unsetenv("OTP_SEED");
    return std::to_string(rounds) + " " + failure;
  };
  CHECK(rounds_with("17") == "1 ");
  for (const std::string wrong : {"abc", "0", "-1", "17x", "99999999999999999999999"}) {
    CHECK(rounds_with(wrong.c_str()) == "0 OTP_SEED=" + wrong + ": expected a number above 0");
  }
}

TEST_CASE("what was started is stopped after the body, the last first, and so after a failure",
          "[testing]") {
  for (bool fails : {false, true}) {
    std::string order;
    struct Witness {
      struct Args {
        std::string name;
        std::string* order = nullptr;
      };
      explicit Witness(Args args) : args_(std::move(args)) { otp::trap_exit(true); }
      void terminate(otp::ExitReason reason) {
        *args_.order += args_.name + " " + reason.to_string() + ";";
      }
      Args args_;
    };
    auto body = [&]() -> otp::Async<void> {
      for (const char* name : {"a", "b"}) {
        auto spec =
            otp::child<Witness>(name, [name, &order] { return Witness::Args{name, &order}; });
        (void)co_await otp::test::start_supervised(std::move(spec));
      }
      otp::test::expect(!fails, "it fails");
      const bool unknown = co_await otp::test::stop_supervised("x");
      otp::test::expect(!unknown, "there is no x");
    };
    try {
      otp::test::in_simulator(body, 1);
      CHECK(!fails);
    } catch (const otp::test::Failed&) {
      CHECK(fails);
    }
    CHECK(order == "b shutdown;a shutdown;");
  }
}

TEST_CASE("flush says what was in the mailbox, and virtual time takes none", "[testing]") {
  const auto before = std::chrono::steady_clock::now();
  otp::test::in_simulator(
      []() -> otp::Async<void> {
        (void)otp::send(otp::self(), 5);
        (void)otp::send(otp::self(), Tick{});
        auto types = otp::test::flush();
        otp::test::expect(types.size() == 2 && types[0] == "int", "two messages");
        otp::test::expect(otp::test::flush().empty(), "and no more");
        const otp::Duration start = otp::test::now();
        co_await otp::test::refute_receive<int>(1000h);
        otp::test::expect(otp::test::now() - start == 1000h, "exactly");
      },
      1);
  CHECK(std::chrono::steady_clock::now() - before < 1min);
}
