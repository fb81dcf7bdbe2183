#include <catch2/catch.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/base/log.h"
#include "otp/base/report.h"
#include "otp/base/secret.h"
#include "otp/behaviour/sys.h"
#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

/// Keeps what is logged.
class Records final : public LogSink {
 public:
  bool enabled(LogLevel, std::string_view) const noexcept override { return true; }
  void log(LogRecord&& record) noexcept override {
    std::lock_guard lock(mutex_);
    records_.push_back(std::move(record));
  }
  /// Of that domain, at least that grave.
  std::vector<LogRecord> in(std::string_view domain, LogLevel level = LogLevel::debug) {
    std::lock_guard lock(mutex_);
    std::vector<LogRecord> found;
    for (const LogRecord& each : records_) {
      if (each.domain == domain && each.level >= level) found.push_back(each);
    }
    return found;
  }
  size_t count(LogLevel level) {
    std::lock_guard lock(mutex_);
    size_t number = 0;
    for (const LogRecord& each : records_) number += each.level >= level ? 1 : 0;
    return number;
  }

 private:
  std::mutex mutex_;
  std::vector<LogRecord> records_;  // guarded by mutex_
};

std::string field(const LogRecord& record, std::string_view key) {
  for (const LogField& each : record.fields) {
    if (each.key == key) return each.value;
  }
  return {};
}

void check_contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
}

/// Runs `body` in a Simulator that logs to `records`.
void run(Records& records, Body body) {
  SystemOptions options;
  options.log = &records;
  Simulator simulator(1, options);
  simulator.run(body);
  simulator.run_until_idle();
}

struct End {
  ExitReason reason;
};
struct Withdraw {
  using Reply = int;
  int cents = 0;
  std::string account{};
};
struct Boom {
  int code = 0;
};
struct Tick {};

class Ledger {
 public:
  struct Args {
    int unused = 0;
  };
  struct State {
    int balance = 100;
    Secret key{"hunter2"};
  };
  State state_;
  explicit Ledger(Args) {}

  int handle_call(Withdraw msg) {
    state_.balance -= msg.cents;
    if (state_.balance < 0) throw std::runtime_error("overdrawn");
    return state_.balance;
  }
  CastResult handle_cast(End msg) { return otp::stop(msg.reason); }
  Async<void> handle_cast(Boom msg) { co_await deeper(msg.code); }

 private:
  static Async<void> deeper(int code) {
    co_await otp::sleep(1ms);
    throw std::logic_error("code " + std::to_string(code));
  }
};

class CarefulLedger {
 public:
  static constexpr bool rollback_on_exception = true;
  struct State {
    int balance = 100;
  };
  State state_;
  struct Args {
    Pid witness{};
  };
  explicit CarefulLedger(Args args) : witness_(args.witness) {}

  int handle_call(Withdraw msg) {
    state_.balance -= msg.cents;
    if (state_.balance < 0) throw std::runtime_error("overdrawn");
    return state_.balance;
  }
  Async<void> handle_cast(Boom) {
    state_.balance = -1;
    co_await otp::sleep(1ms);
    throw std::runtime_error("later");
  }
  void terminate(ExitReason) { (void)otp::send(witness_, Boom{state_.balance}); }

 private:
  Pid witness_;
};

class Careless {
 public:
  using Args = CarefulLedger::Args;
  struct State {
    int balance = 100;
  };
  State state_;
  explicit Careless(Args args) : witness_(args.witness) {}
  void handle_cast(Boom) {
    state_.balance = -1;
    throw std::runtime_error("now");
  }
  void terminate(ExitReason) { (void)otp::send(witness_, Boom{state_.balance}); }

 private:
  Pid witness_;
};

Async<void> end_with(ExitReason reason) {
  auto ledger = (co_await start<Ledger>()).or_exit();
  End end{std::move(reason)};
  cast(ledger, end);
  co_await gone(ledger.pid());
}

}  // namespace

TEST_CASE("SYS-007 a server that stops in order logs nothing", "[sys]") {
  everywhere(
      []() -> Async<void> {
        co_await end_with(ExitReason::normal());
        co_await end_with(ExitReason::shutdown());
        co_await end_with(ExitReason::shutdown(Term::literal("done")));
        auto ledger = (co_await start<Ledger>()).or_exit();
        co_await stop(ledger);
        require(logged().empty(), "something was logged");
      },
      kFewRounds);
}

TEST_CASE("SYS-008 a crash gives one error report and one crash report", "[sys]") {
  Records records;
  run(records, []() -> Async<void> {
    register_name("bank", self());
    StartOptions options{.name = "ledger"};
    auto ledger = (co_await start<Ledger>({}, options)).or_exit();
    Withdraw message{.cents = 500, .account = "a-17"};
    auto result = co_await try_call(ledger, message);
    require(!result.ok(), "it did not crash");
    const std::string reason = result.error().to_string();
    require(reason.starts_with("{{std::runtime_error,\"overdrawn\"},[thrown at "), reason);
    require(reason.find('\n') == std::string::npos, reason);
  });
  CHECK(records.count(LogLevel::error) == 2);

  const auto errors = records.in("otp.gen_server");
  REQUIRE(errors.size() == 1);
  const std::string& error = errors[0].message;
  CHECK(field(errors[0], "name") == "ledger");
  CHECK(field(errors[0], "server") == "Ledger");
  check_contains(error, "server ledger <0.");
  check_contains(error, "last message: Withdraw{cents: 500, account: ");
  check_contains(error, "client: bank\n");
  check_contains(error, "state: State{balance: -400, key: ***}");
  check_contains(error, "reason: exception std::runtime_error: overdrawn\nthrown at\n  #0 ");

  const auto crashes = records.in("otp.proc_lib");
  REQUIRE(crashes.size() == 1);
  const std::string& crash = crashes[0].message;
  check_contains(crash, "initial call: Ledger\n");
  check_contains(crash, "exit reason: exception std::runtime_error: overdrawn\nthrown at\n");
  check_contains(crash, "ancestors: [bank]\n");
}

TEST_CASE("SYS-008 a stop with another reason is reported as well", "[sys]") {
  Records records;
  run(records, []() -> Async<void> { co_await end_with(ExitReason::atom("broken")); });
  CHECK(records.count(LogLevel::error) == 2);
  const auto errors = records.in("otp.gen_server");
  REQUIRE(errors.size() == 1);
  check_contains(errors[0].message, "reason: broken\n");
}

TEST_CASE("SYS-008 a crash report shows where coroutines awaited each other", "[sys]") {
  Records records;
  run(records, []() -> Async<void> {
    auto ledger = (co_await start<Ledger>()).or_exit();
    Boom boom{7};
    cast(ledger, boom);
    co_await gone(ledger.pid());
  });
  const auto crashes = records.in("otp.proc_lib");
  REQUIRE(crashes.size() == 1);
  const std::string& crash = crashes[0].message;
  check_contains(crash, "awaited at\n  #0 ");
  check_contains(crash, "Ledger::deeper");
  check_contains(crash, "Ledger::handle_cast");
  const auto errors = records.in("otp.gen_server");
  REQUIRE(errors.size() == 1);
  check_contains(errors[0].message, "last message: Boom{code: 7}\n");
}

TEST_CASE("SYS-008 a crash report shows what was not read", "[sys]") {
  Records records;
  run(records, []() -> Async<void> {
    auto ledger = (co_await start<Ledger>()).or_exit();
    (co_await sys::suspend(ledger)).or_exit();
    Boom boom{1};
    End end{ExitReason::normal()};
    cast(ledger, boom);
    cast(ledger, end);
    (co_await sys::resume(ledger)).or_exit();
    co_await gone(ledger.pid());
  });
  const auto crashes = records.in("otp.proc_lib");
  REQUIRE(crashes.size() == 1);
  check_contains(crashes[0].message, "messages: [cast End{reason: normal} from <0.");
}

TEST_CASE("SYS-008 a failed init gives a crash report alone", "[sys]") {
  struct Failing {
    Init init() { return otp::stop(ExitReason::atom("bad_disk")); }
  };
  Records records;
  run(records, []() -> Async<void> {
    auto result = co_await start<Failing>();
    require_reason(result.error(), "bad_disk");
  });
  CHECK(records.count(LogLevel::error) == 1);
  CHECK(records.in("otp.proc_lib").size() == 1);
}

TEST_CASE("GS-029 with rollback_on_exception terminate sees the state from before the handler",
          "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto careful = (co_await start<CarefulLedger>({.witness = self()})).or_exit();
        Withdraw fine{.cents = 30};
        (void)co_await call(careful, fine);
        Withdraw much{.cents = 500};
        auto failed = co_await try_call(careful, much);
        require(!failed.ok(), "it did not fail");
        const Boom left = co_await receive<Boom>();
        require(left.code == 70, "not the state from before");
        (void)logged();
      },
      kFewRounds);
}

TEST_CASE("the rollback covers a handler that had waited", "[sys]") {
  simulate(
      []() -> Async<void> {
        auto careful = (co_await start<CarefulLedger>({.witness = self()})).or_exit();
        cast(careful, Boom{});
        const Boom left = co_await receive<Boom>();
        require(left.code == 100, "not the state from before");
        co_await gone(careful.pid());
        (void)logged();
      },
      kFewRounds);
}

TEST_CASE("without rollback terminate sees what the handler left", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto careless = (co_await start<Careless>({.witness = self()})).or_exit();
        cast(careless, Boom{});
        const Boom left = co_await receive<Boom>();
        require(left.code == -1, "it was rolled back");
        co_await gone(careless.pid());
        (void)logged();
      },
      kFewRounds);
}

// ---- Supervisors

namespace {

class Worker {
 public:
  struct Args {
    bool trap = false;
  };
  explicit Worker(Args args) : trap_(args.trap) { trap_exit(args.trap); }
  CastResult handle_cast(End msg) { return otp::stop(msg.reason); }
  Async<void> terminate(ExitReason) {
    if (trap_) co_await otp::sleep(1h);
  }

 private:
  bool trap_;
};

// Starts one worker, ends it with `reason`, and lets the supervisor see it.
Async<void> end_child(Restart restart, ExitReason reason, uint32_t intensity = 1) {
  trap_exit(true);
  SupervisorSpec spec;
  spec.intensity = intensity;
  ChildSpec worker = child<Worker>("worker", {}, {.name = "worker"});
  worker.restart = restart;
  spec.children.push_back(std::move(worker));
  auto supervisor = (co_await Supervisor::start_link(std::move(spec), {.name = "sup"})).or_exit();
  End end{std::move(reason)};
  const Pid victim = *whereis("worker");
  cast(Server<Worker>(victim), end);
  co_await gone(victim);
  co_await otp::sleep(1ms);
  if (is_alive(supervisor.pid())) co_await stop(supervisor, ExitReason::shutdown());
}

}  // namespace

TEST_CASE("SYS-009 a supervisor reports the crash of a child and the restart of a permanent one",
          "[sys]") {
  Records crash;
  run(crash,
      []() -> Async<void> { co_await end_child(Restart::transient, ExitReason::atom("oops")); });
  auto reports = crash.in("otp.supervisor", LogLevel::error);
  REQUIRE(reports.size() == 1);
  CHECK(field(reports[0], "context") == "child_terminated");
  CHECK(field(reports[0], "child") == "worker");
  CHECK(field(reports[0], "supervisor") == "sup");
  CHECK(field(reports[0], "reason") == "oops");

  Records permanent;
  run(permanent,
      []() -> Async<void> { co_await end_child(Restart::permanent, ExitReason::normal()); });
  reports = permanent.in("otp.supervisor", LogLevel::error);
  REQUIRE(reports.size() == 1);
  CHECK(field(reports[0], "reason") == "normal");
}

TEST_CASE("SYS-009 a transient child that ends with normal is no error", "[sys]") {
  Records records;
  run(records,
      []() -> Async<void> { co_await end_child(Restart::transient, ExitReason::normal()); });
  CHECK(records.count(LogLevel::warning) == 0);
}

TEST_CASE("SYS-009 a start is a progress report at a lower level", "[sys]") {
  Records records;
  run(records,
      []() -> Async<void> { co_await end_child(Restart::permanent, ExitReason::normal()); });
  size_t progress = 0;
  for (const LogRecord& each : records.in("otp.supervisor")) {
    if (each.level >= LogLevel::error) continue;
    ++progress;
    CHECK(each.level == LogLevel::info);
    CHECK(field(each, "report") == "progress");
    CHECK(field(each, "child") == "worker");
  }
  CHECK(progress == 2);
}

TEST_CASE("SYS-010 a supervisor that gives up names intensity, child and pid", "[sys]") {
  Records records;
  run(records,
      []() -> Async<void> { co_await end_child(Restart::permanent, ExitReason::atom("oops"), 0); });
  const auto reports = records.in("otp.supervisor", LogLevel::error);
  REQUIRE(reports.size() == 2);
  CHECK(field(reports[0], "context") == "child_terminated");
  CHECK(field(reports[1], "context") == "shutdown");
  CHECK(field(reports[1], "reason") == "reached_max_restart_intensity");
  CHECK(field(reports[1], "child") == "worker");
  CHECK(field(reports[1], "child_pid").substr(0, 3) == "<0.");
}

TEST_CASE("SYS-010 a child killed because its shutdown time ran out is a shutdown error", "[sys]") {
  Records records;
  run(records, []() -> Async<void> {
    trap_exit(true);
    SupervisorSpec spec;
    ChildSpec worker = child<Worker>("slow", {.trap = true});
    worker.shutdown = Shutdown(100ms);
    spec.children.push_back(std::move(worker));
    auto supervisor = (co_await Supervisor::start_link(std::move(spec))).or_exit();
    co_await stop(supervisor, ExitReason::shutdown());
  });
  const auto reports = records.in("otp.supervisor", LogLevel::error);
  REQUIRE(reports.size() == 1);
  CHECK(field(reports[0], "context") == "shutdown_error");
  CHECK(field(reports[0], "reason") == "killed");
  CHECK(field(reports[0], "child") == "slow");
  CHECK(field(reports[0], "child_pid").substr(0, 3) == "<0.");
}

TEST_CASE("SYS-006 a trace is logged while it is switched on", "[sys]") {
  Records records;
  run(records, []() -> Async<void> {
    auto ledger = (co_await start<Ledger>()).or_exit();
    (co_await sys::trace(ledger, true)).or_exit();
    Withdraw one{.cents = 1};
    (void)co_await call(ledger, one);
    (co_await sys::trace(ledger, false)).or_exit();
    (void)co_await call(ledger, one);
    co_await stop(ledger);
  });
  const auto traced = records.in("otp.sys");
  REQUIRE(traced.size() == 2);
  check_contains(traced[0].message, ": call Withdraw{cents: 1, account: \"\"} from <0.");
  check_contains(traced[1].message, ": reply 99 to <0.");
}

// ---- Large things

namespace {

struct Bulk {
  using Reply = void;
  std::string content{};
  Secret key{"open sesame"};
};
struct Line {
  std::string text;
};

class Huge {
 public:
  struct State {
    std::vector<std::string> lines{};
    Secret key{"open sesame"};
  };
  State state_;
  Huge() { state_.lines.assign(200'000, std::string(1000, 'x')); }
  void handle_call(Bulk) { throw std::runtime_error("too much"); }
  void handle_info(Line) {}
};

}  // namespace

TEST_CASE("R-027 the report of a large server that crashes stays small and tells no secret",
          "[sys]") {
  Records records;
  run(records, []() -> Async<void> {
    auto huge = (co_await start<Huge>()).or_exit();
    (co_await sys::suspend(huge)).or_exit();
    Bulk bulk{.content = std::string(50 << 20, 'y')};
    auto request = std::move(bulk);
    Pid caller =
        spawn([](Server<Huge> to,
                 Bulk message) -> Async<void> { (void)co_await try_call(to, std::move(message)); },
              huge, std::move(request));
    co_await yield();
    for (int i = 0; i < 100'000; ++i) {
      Line line{std::string(100, 'z')};
      (void)otp::send(huge, std::move(line));
    }
    (co_await sys::resume(huge)).or_exit();
    co_await gone(huge.pid());
    co_await gone(caller);
  });
  const auto errors = records.in("otp.gen_server");
  const auto crashes = records.in("otp.proc_lib");
  REQUIRE(errors.size() == 1);
  REQUIRE(crashes.size() == 1);
  for (const LogRecord& each : {errors[0], crashes[0]}) {
    CHECK(each.message.size() <= kReportBytesMax);
    CHECK(each.message.find("open sesame") == std::string::npos);
  }
  check_contains(errors[0].message, "last message: Bulk{");
}

TEST_CASE("R-027 a format_status that throws is mentioned in the report", "[sys]") {
  struct Broken {
    void format_status(BoundedWriter& out) const {
      out.write("half");
      throw std::runtime_error("no words");
    }
    void handle_cast(Tick) { throw std::logic_error("crash"); }
  };
  Records records;
  run(records, []() -> Async<void> {
    auto broken = (co_await start<Broken>()).or_exit();
    cast(broken, Tick());
    co_await gone(broken.pid());
  });
  const auto errors = records.in("otp.gen_server");
  REQUIRE(errors.size() == 1);
  check_contains(errors[0].message,
                 "state: half(formatting it failed: std::runtime_error: no words)");
  CHECK(records.in("otp.proc_lib").size() == 1);
}
