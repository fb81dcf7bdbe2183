#include "otp/application/tree.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "otp/application/control.h"
#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

class Ledger {};
class Session {};

Application application_bank() {
  Application bank;
  bank.name = "bank";
  bank.tree = [] {
    SupervisorSpec spec;
    spec.strategy = Strategy::rest_for_one;
    SupervisorSpec workers;
    workers.strategy = Strategy::one_for_all;
    workers.children = {
        child<Ledger>("teller", {}, {.restart = Restart::transient, .shutdown = 2s}),
        child<Ledger>("auditor", {},
                      {.restart = Restart::transient, .shutdown = Shutdown::brutal_kill})};
    spec.children = {child<Ledger>("ledger", {}, {.name = "the_ledger"}),
                     supervisor("workers", workers, {.name = "workers"}),
                     dynamic_supervisor("sessions", {}, {.name = "sessions"})};
    return spec;
  };
  return bank;
}

Async<std::string> draw(bool as_json) {
  (co_await application::start_controller()).or_exit();
  (co_await application::start("bank")).or_exit();
  DynamicSupervisorRef sessions{Name<DynamicSupervisor>("sessions")};
  for (int i = 0; i < 2; ++i) {
    ChildSpec session = child<Session>({}, {}, {.restart = Restart::temporary});
    (co_await DynamicSupervisor::start_child(sessions, std::move(session))).or_exit();
  }
  SupervisorRef workers{Name<Supervisor>("workers")};
  (co_await Supervisor::terminate_child(workers, "auditor")).or_exit();
  std::vector<std::string> names{"bank", "audit"};
  co_return co_await internal::live_trees(std::move(names), as_json);
}

// Nobody knows which slots the processes got.
std::string with_plain_pids(std::string text) {
  for (size_t at = text.find("<0."); at != std::string::npos; at = text.find("<0.", at)) {
    text.replace(at, text.find('>', at) + 1 - at, "<pid>");
  }
  return text;
}

std::string golden(const std::string& name) {
  std::ifstream file("otp/application/testing/" + name, std::ios::binary);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string drawn(bool as_json) {
  Simulator simulator(1);
  application::attach(simulator, {application_bank()});
  return with_plain_pids(simulator.run(draw, as_json));
}

// One blank for several, so that the width of a pid does not count.
std::string narrow(const std::string& text) {
  std::string out;
  bool in_line = false;  // behind the blanks that a line begins with
  for (char c : text) {
    if (c == ' ' && in_line && out.back() == ' ') continue;
    in_line = c == '\n' ? false : in_line || c != ' ';
    out += c;
  }
  return out;
}

}  // namespace

TEST_CASE("a running tree shows strategies, restarts and living pids", "[tree]") {
  CHECK(narrow(drawn(false)) == golden("live_tree.txt"));
}

TEST_CASE("a running tree as JSON", "[tree]") {
  CHECK(drawn(true) + "\n" == golden("live_tree.json"));
}

TEST_CASE("a supervisor that does not answer in time is shown without its children", "[tree]") {
  Simulator simulator(1);
  Application stuck;
  stuck.name = "bank";
  stuck.tree = [] {
    SupervisorSpec spec;
    spec.children = {child<Ledger>("ledger")};
    return spec;
  };
  application::attach(simulator, {stuck});
  const std::string text = simulator.run([]() -> Async<std::string> {
    (co_await application::start_controller()).or_exit();
    (co_await application::start("bank")).or_exit();
    // Its new child takes an hour to start, in which the supervisor answers nobody.
    spawn([]() -> Async<void> {
      SupervisorRef top{Name<Supervisor>("bank_sup")};
      ChildSpec slow = child_started_by("slow", []() -> Async<Result<Pid>> {
        co_await otp::sleep(1h);
        co_return ExitReason::atom("late");
      });
      (void)co_await Supervisor::start_child(top, std::move(slow));
    });
    co_await otp::sleep(1s);
    std::vector<std::string> names{"bank"};
    co_return co_await internal::live_trees(std::move(names), false);
  });
  CHECK(narrow(with_plain_pids(text)) == "bank <pid> no_answer supervisor\n");
}
