#include "otp/application/application.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "otp/application/control.h"
#include "otp/application/controller.h"
#include "otp/application/tree.h"
#include "otp/config/check.h"
#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

struct Ask {
  using Reply = int;
};
struct Break {};

class Ledger {
 public:
  struct Args {
    int opening = 0;
  };
  explicit Ledger(Args args) : cents_(args.opening) {}
  int handle_call(Ask) { return cents_; }
  void handle_cast(Break) { throw std::runtime_error("broken ledger"); }

 private:
  int cents_;
};

class Teller {
 public:
  struct Args {
    Name<Ledger> ledger{};
  };
  explicit Teller(Args args) : ledger_(std::move(args.ledger)) {}
  Async<int> handle_call(Ask) { co_return co_await otp::call(ledger_, Ask{}); }

 private:
  Name<Ledger> ledger_;
};

Application bank() {
  Application application;
  application.name = "bank";
  application.servers = servers<Ledger, Teller>();
  return application;
}

constexpr const char* kBank = R"(application: bank
supervisor:
  strategy: rest_for_one
  children:
    - {id: ledger, start: Ledger, name: ledger, args: {opening: 7}}
    - id: counter
      supervisor:
        children:
          - {id: teller, start: Teller, name: teller, args: {ledger: ledger}, shutdown: 2s}
)";

config::Configuration configuration() {
  config::ApplicationDecl decl;
  decl.name = "bank";
  for (const ServerEntry& entry : bank().servers) decl.servers.push_back(entry.decl);
  auto result = config::check(kBank, "bank.yaml", {decl}, {});
  INFO(result.text());
  REQUIRE(result.ok());
  return *result.configuration;
}

std::vector<Application> plan() {
  Application application = bank();
  application.tree = [] { return supervisor_spec(configuration().supervisor, bank().servers); };
  return {std::move(application)};
}

struct Seen {
  std::vector<std::string> lines;
  bool ready = false;
  internal::ControllerHooks hooks() {
    internal::ControllerHooks hooks;
    hooks.report = [this](const std::string& line) { lines.push_back(line); };
    hooks.ready = [this](std::string) { return mark(*this); };
    return hooks;
  }
  static Async<void> mark(Seen& seen) {
    seen.ready = true;
    co_return;
  }
};

}  // namespace

TEST_CASE("a tree in YAML becomes running servers that find each other", "[application]") {
  Simulator simulator(1);
  application::attach(simulator, plan());
  Seen seen;
  int status = simulator.run(
      [](std::vector<Application> planned, Seen* s) -> Async<int> {
        Pid main = self();
        spawn(
            [](Pid controller, Seen* told) -> Async<void> {
              while (!told->ready) co_await yield();
              CHECK(co_await otp::call(Name<Teller>("teller"), Ask{}) == 7);
              observe::TreeNode tree = co_await internal::live_tree("bank");
              CHECK(tree.children.size() == 2);
              CHECK(tree.children.at(1).children.at(0).name == "teller");
              CHECK(tree.children.at(1).children.at(0).shutdown == "2s");
              (void)otp::send(controller, internal::StopApplications{});
            },
            main, s);
        co_return co_await internal::control_applications(std::move(planned), s->hooks());
      },
      plan(), &seen);
  CHECK(status == 0);
  CHECK(seen.lines == std::vector<std::string>{"stopping bank", "stopped bank"});
}

TEST_CASE("an application that gives up is reported with its reason", "[application]") {
  Simulator simulator(2);
  application::attach(simulator, plan());
  Seen seen;
  int status = simulator.run(
      [](std::vector<Application> planned, Seen* s) -> Async<int> {
        spawn(
            [](Seen* told) -> Async<void> {
              while (!told->ready) co_await yield();
              for (int i = 0; i < 2; ++i) {
                (void)otp::cast(Name<Ledger>("ledger"), Break{});
                co_await otp::sleep(10ms);
              }
            },
            s);
        co_return co_await internal::control_applications(std::move(planned), s->hooks());
      },
      plan(), &seen);
  CHECK(status == 1);
  REQUIRE(seen.lines.size() == 1);
  CHECK(seen.lines.at(0).find("bank ended: shutdown") == 0);
}

TEST_CASE("applications start after those that they need", "[application]") {
  Application a, b, c;
  a.name = "a";
  a.applications = {"b", "c"};
  b.name = "b";
  b.applications = {"c"};
  c.name = "c";
  auto order = start_order({a, b, c}).value();
  CHECK(order.at(0).name + order.at(1).name + order.at(2).name == "cba");
  c.applications = {"a"};
  CHECK(start_order({a, b, c}).error().to_string().find("{dependency_cycle,") == 0);
  CHECK(start_order({a}).error().to_string() == "{unknown_application,b}");
}

TEST_CASE("a declared tree is drawn without starting anything", "[application][tree]") {
  config::Configuration config = configuration();
  std::string text =
      observe::tree_text(internal::declared_tree(config.application, config.supervisor));
  CHECK(text.find("rest_for_one") != std::string::npos);
  CHECK(text.find("teller") != std::string::npos);
}
