#include "otp/task/task_supervisor.h"

#include <catch2/catch.hpp>
#include <ranges>
#include <string>
#include <vector>

#include "tests/conformance/tasks.h"

using namespace otp;
using namespace otp::scene;
using namespace std::chrono_literals;

TEST_CASE("a supervised task gives its value and is forgotten", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await task_supervisor();
    Holdings before = holdings();
    auto task = co_await TaskSupervisor::async(sup, twice, 21);
    auto other = co_await TaskSupervisor::async_nolink(sup, sleeper, 2);
    require(co_await task.await() == 42, "linked");
    require(co_await other.await() == 2, "not linked");
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("a linked supervised task that fails takes its owner along", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    ExitReason reason = co_await end_of([]() -> Async<void> {
      auto sup = co_await task_supervisor();
      auto task = co_await TaskSupervisor::async(sup, bad_at_two, 2);
      co_await task.yield(infinity);
      co_await otp::sleep(infinity);
    });
    require(reason.is("bad"), reason.to_string());
  });
}

TEST_CASE("a task supervisor that is gone throws noproc", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await task_supervisor();
    co_await otp::stop(sup);
    Holdings before = holdings();
    ExitReason reason;
    try {
      auto task = co_await TaskSupervisor::async(sup, twice, 1);
    } catch (const Exit& exit) {
      reason = exit.reason();
    }
    require(first_of(reason).is_atom("noproc"), reason.to_string());
    co_await require_nothing_left(before);
  });
}

TEST_CASE("the end of the supervisor ends its tasks", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await task_supervisor();
    auto task = co_await TaskSupervisor::async_nolink(sup, endless, 1);
    co_await otp::stop(sup);
    auto outcome = co_await task.yield(infinity);
    require(outcome && outcome->error().is("shutdown"), "shutdown");
  });
}

TEST_CASE("a linked supervised stream, its order, limit and timeout", "[task_supervisor]") {
  simulate([]() -> Async<void> {
    auto sup = co_await task_supervisor();
    Holdings before = holdings();
    auto stream = TaskSupervisor::async_stream(
        sup, std::vector{30, 900, 20, 5}, sleeper,
        {.max_concurrency = 2, .timeout = 100ms, .on_timeout = OnTimeout::kill_task});
    auto results = co_await stream.collect();
    require(results.size() == 4 && results[0].value() == 30, "first");
    require(results[1].error().is("timeout"), "timeout");
    require(results[2].value() == 20 && results[3].value() == 5, "rest");
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("R-005 a supervised stream that is dropped or refused ends its tasks",
          "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await task_supervisor(3);
    Holdings before = holdings();
    {
      auto stream =
          TaskSupervisor::async_stream(sup, std::views::iota(1), sleeper, {.max_concurrency = 3});
      require((co_await stream.next())->value() == 1, "first");
    }
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
    auto more = TaskSupervisor::async_stream_nolink(sup, std::views::iota(1), endless,
                                                    {.max_concurrency = 4});
    ExitReason reason;
    try {
      co_await more.next();
    } catch (const Exit& exit) {
      reason = exit.reason();
    }
    require(reason.is("max_children"), reason.to_string());
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("R-003 nothing is kept of tasks that ended", "[task_supervisor]") {
  simulate(
      []() -> Async<void> {
        auto sup = co_await task_supervisor();
        auto stream = TaskSupervisor::async_stream_nolink(sup, std::views::iota(0, 5000), twice,
                                                          {.max_concurrency = 100});
        int count = 0;
        while (co_await stream.next()) ++count;
        require(count == 5000, "all");
        co_await require_no_children(sup);
        require((co_await DynamicSupervisor::count_children(sup)).specs == 0, "none");
      },
      2);
}
