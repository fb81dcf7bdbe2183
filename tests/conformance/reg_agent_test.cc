// Agent: REG-011..015.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/behaviour/agent.h"
#include "otp/supervision/supervisor.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

using Numbers = Agent<std::vector<int>>;
using List = std::vector<int>;

List none() { return {}; }
List failing() { throw std::runtime_error("no state"); }

std::string text_of(const List& list) {
  std::string text;
  for (int each : list) text += std::to_string(each) + " ";
  return text;
}

// Whether an agent of T takes F for get_and_update.
template <class F>
constexpr bool kTaken = internal::GetsAndUpdates<F, List>;
using NoPair = int (*)(List);
std::pair<int, List> last_and_rest(List list) {
  int last = list.back();
  list.pop_back();
  return {last, std::move(list)};
}

}  // namespace

TEST_CASE("REG-011 all functions run inside the agent, one at a time, in order of arrival",
          "[reg]") {
  everywhere([]() -> Async<void> {
    auto agent = (co_await Numbers::start(none)).or_exit();
    auto where = [](const List&) { return self(); };
    Pid inside = co_await Numbers::get(agent, where);
    require(inside == agent.pid(), "a function ran elsewhere");
    for (int i = 0; i < 5; ++i) {
      Numbers::cast(agent, [i](List& list) { list.push_back(i); });
    }
    auto append = [](List list) {
      list.push_back(5);
      return list;
    };
    co_await Numbers::update(agent, append);
    require_equal(co_await Numbers::get(agent, text_of), "0 1 2 3 4 5 ");
    int last = co_await Numbers::get_and_update(agent, last_and_rest);
    require(last == 5, "get_and_update gave something else");
    require_equal(co_await Numbers::get(agent, text_of), "0 1 2 3 4 ");
    co_await Numbers::stop(agent);
  });
}

TEST_CASE("REG-012 what the first function throws is the error of start_link", "[reg]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        auto started = co_await Numbers::start_link(failing);
        require(!started.ok(), "started");
        std::string reason = started.error().to_string();
        require(reason.find("{{std::runtime_error,\"no state\"},") == 0, reason);
      },
      kFewRounds);
}

TEST_CASE("REG-013 get_and_update takes no function that returns no pair", "[reg]") {
  // OTP stops the agent with bad_return_value; here the type says it, before anything runs.
  CHECK(kTaken<decltype(&last_and_rest)>);
  CHECK_FALSE(kTaken<NoPair>);
}

TEST_CASE("REG-011 a function that throws ends the agent, and its caller gets the reason",
          "[reg]") {
  everywhere(
      []() -> Async<void> {
        auto agent = (co_await Numbers::start(none)).or_exit();
        auto at = [](const List& list) { return list.at(7); };
        std::string reason;
        try {
          (void)co_await Numbers::get(agent, at);
        } catch (const Exit& exit) {
          reason = exit.reason().to_string();
        }
        require(reason.find("{{{std::out_of_range,") == 0, reason);
        require(!is_alive(agent.pid()), "it lives");
      },
      kFewRounds);
}

TEST_CASE("REG-014 a supervised agent restarts with its first function, the old state is lost",
          "[reg]") {
  everywhere(
      []() -> Async<void> {
        SupervisorSpec spec{.intensity = 10,
                            .children = {child<Numbers>("numbers", none, {.name = "numbers"})}};
        auto supervisor = (co_await Supervisor::start_link(spec)).or_exit();
        Name<Numbers> name("numbers");
        auto add = [](List& list) { list.push_back(1); };
        co_await Numbers::update(name, add);
        Reference down = monitor(*whereis("numbers"));
        Numbers::cast(name, [](List&) { throw std::runtime_error("crash"); });
        (void)co_await down_of(down);
        (void)co_await Supervisor::which_children(supervisor);
        require_equal(co_await Numbers::get(name, text_of), "");
        unlink(supervisor.pid());
        co_await stop(supervisor.pid(), ExitReason::shutdown());
      },
      kFewRounds);
}

TEST_CASE("REG-015 stop returns when the agent is gone and its name is free", "[reg]") {
  everywhere([]() -> Async<void> {
    StartOptions options{.name = "numbers"};
    auto agent = (co_await Numbers::start(none, options)).or_exit();
    auto other = co_await Numbers::start(none, options);
    require(!other.ok(), "two have one name");
    require_reason(other.error(), "{already_started," + agent.pid().to_string() + "}");
    Reference down = monitor(agent.pid());
    co_await Numbers::stop(agent);
    require(!whereis("numbers"), "the name is left");
    require_reason(co_await down_of(down), "normal");
    agent = (co_await Numbers::start(none, options)).or_exit();
    down = monitor(agent.pid());
    co_await Numbers::stop(agent, ExitReason::shutdown());
    require_reason(co_await down_of(down), "shutdown");
  });
}
