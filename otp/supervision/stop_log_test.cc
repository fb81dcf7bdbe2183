// What supervisors say of the children that they stop, and of those that do not stop.

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "otp/base/log.h"
#include "otp/runtime/system.h"
#include "otp/runtime/testing/deaf_operation.h"
#include "otp/supervision/testing/pool_fixture.h"
#include "otp/supervision/testing/sup_fixture.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

/// Keeps what supervisors say of stopped children, and their errors, with `<pid>` for each pid.
class Lines final : public LogSink {
 public:
  bool enabled(LogLevel level, std::string_view domain) const noexcept override {
    if (domain == kStopLogDomain) return level == LogLevel::info;
    return level >= LogLevel::error && domain == "otp.supervisor";
  }
  void log(LogRecord&& record) noexcept override {
    std::string text = std::move(record.message);
    for (size_t at = text.find("<0."); at != std::string::npos; at = text.find("<0.", at)) {
      text.replace(at, text.find('>', at) + 1 - at, "<pid>");
    }
    lines.push_back(std::move(text));
  }
  std::vector<std::string> lines;
};

using Expected = std::vector<std::string>;

Expected said_by(Async<void> (*body)()) {
  Lines log;
  SystemOptions options;
  options.log = &log;
  Simulator simulator(1, options);
  simulator.run(body);
  return log.lines;
}

ChildSpec quiet(std::string id, Worker::Args args = {}) {
  return child<Worker>(std::move(id), std::move(args));
}

Async<SupervisorRef> start_top(std::vector<ChildSpec> children) {
  trap_exit(true);
  SupervisorSpec spec{.children = std::move(children)};
  co_return (co_await Supervisor::start_link(std::move(spec), {.name = "top"})).or_exit();
}

Async<void> stop_dynamic(int children) {
  trap_exit(true);
  auto sup = (co_await Dynamic::start_link({}, {.name = "sessions"})).or_exit();
  for (int i = 0; i < children; ++i) (void)co_await add(sup, nameless());
  co_await stop_sup(sup.pid());
}

}  // namespace

TEST_CASE("a supervisor that ends says what it stops, in that order", "[stop_log]") {
  CHECK(said_by([]() -> Async<void> {
          SupervisorSpec inner{.children = {quiet("c"), quiet("d")}};
          auto top = co_await start_top({quiet("a"), supervisor("b", inner, {.name = "inner"}),
                                         quiet("e", {.stop_time = 30ms})});
          co_await stop_sup(top.pid());
        }) == Expected{"supervisor top: stopped child e <pid> (shutdown, 30 ms)",
                       "supervisor inner: stopped child d <pid> (shutdown, 0 ms)",
                       "supervisor inner: stopped child c <pid> (shutdown, 0 ms)",
                       "supervisor top: stopped child b <pid> (shutdown, 0 ms)",
                       "supervisor top: stopped child a <pid> (shutdown, 0 ms)"});
}

TEST_CASE("terminate_child is said, and so is a child that ended before its turn", "[stop_log]") {
  CHECK(said_by([]() -> Async<void> {
          auto top = co_await start_top(
              {quiet("a"), worker("b"), quiet("c", {.stop_time = 30ms}), quiet("d")});
          (co_await Supervisor::terminate_child(top, "d")).or_exit();
          otp::exit(top.pid(), ExitReason::shutdown());
          co_await otp::sleep(10ms);
          end("b", ExitReason::atom("early"));
          co_await down_of(top.pid());
        }) == Expected{"supervisor top: stopped child d <pid> (shutdown, 0 ms)",
                       "supervisor top: stopped child c <pid> (shutdown, 30 ms)",
                       "supervisor top: shutdown_error, child b <pid>: early\n"
                       "child: start=Worker restart=permanent shutdown=5s type=worker\n",
                       "supervisor top: child b <pid> had ended (early)",
                       "supervisor top: stopped child a <pid> (shutdown, 0 ms)"});
}

TEST_CASE("of many dynamic children only the number is said", "[stop_log]") {
  CHECK(said_by([] { return stop_dynamic(2); }) ==
        Expected(2, "supervisor sessions: stopped child <pid> (shutdown, 0 ms)"));
  CHECK(said_by([] { return stop_dynamic(11); }) ==
        Expected{"supervisor sessions: stopped 11 children (0 ms)"});
}

namespace {

class Held {
 public:
  struct Args {
    std::shared_ptr<std::vector<std::unique_ptr<internal::DeafOperation>>> operations{};
  };
  explicit Held(Args args) : operations_(std::move(args.operations)) { trap_exit(true); }
  Async<void> terminate(ExitReason) {
    operations_->push_back(std::make_unique<internal::DeafOperation>());
    internal::WaitForDeaf wait{operations_->back().get()};
    co_await wait;
  }

 private:
  std::shared_ptr<std::vector<std::unique_ptr<internal::DeafOperation>>> operations_;
};

/// Told to stop, killed after 1 s; the supervisor is gone once the operations are answered, 17 s
/// after that.
Async<void> stop_held(Pid sup, Held::Args held) {
  otp::exit(sup, ExitReason::shutdown());
  co_await otp::sleep(18s);
  for (auto& each : *held.operations) each->answer();
  co_await down_of(sup);
}

Async<void> stop_static_held() {
  Held::Args args{std::make_shared<std::vector<std::unique_ptr<internal::DeafOperation>>>()};
  auto top = co_await start_top({quiet("a"), child<Held>("held", args, {.shutdown = 1s})});
  co_await stop_held(top.pid(), args);
}

Async<void> stop_dynamic_held(int children) {
  trap_exit(true);
  Held::Args args{std::make_shared<std::vector<std::unique_ptr<internal::DeafOperation>>>()};
  auto sup = (co_await Dynamic::start_link({}, {.name = "sessions"})).or_exit();
  for (int i = 0; i < children; ++i) {
    ChildOptions options{.restart = Restart::temporary, .shutdown = 1s};
    (void)co_await add(sup, child<Held>({}, args, options));
  }
  co_await stop_held(sup.pid(), args);
}

/// Those lines that say it.
Expected unkilled(const Expected& lines) {
  Expected found;
  for (const std::string& line : lines) {
    if (line.find(" killed ") != std::string::npos) found.push_back(line);
  }
  return found;
}

}  // namespace

TEST_CASE("a killed child that does not end is named until it does", "[stop_log]") {
  const std::string why =
      " ago and has not ended: its callback does not return, and nothing can "
      "end it";
  const Expected lines = said_by(stop_static_held);
  CHECK(unkilled(lines) == Expected{"supervisor top: child held <pid> was killed 5s" + why,
                                    "supervisor top: child held <pid> was killed 15s" + why});
  REQUIRE(lines.size() >= 2);
  CHECK(lines.back() == "supervisor top: stopped child a <pid> (shutdown, 0 ms)");

  CHECK(unkilled(said_by([] { return stop_dynamic_held(1); })) ==
        Expected{"supervisor sessions: child <pid> was killed 5s" + why,
                 "supervisor sessions: child <pid> was killed 15s" + why});
  CHECK(unkilled(said_by([] { return stop_dynamic_held(11); })) ==
        Expected{"supervisor sessions: 11 children were killed 5s ago and have not ended: their "
                 "callbacks do not return",
                 "supervisor sessions: 11 children were killed 15s ago and have not ended: their "
                 "callbacks do not return"});
}
