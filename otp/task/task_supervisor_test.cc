#include "otp/task/task_supervisor.h"

#include <catch2/catch.hpp>
#include <ranges>
#include <string>
#include <vector>

#include "tests/support/everywhere.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

Async<int> sleeper(int ms) {
  co_await otp::sleep(std::chrono::milliseconds(ms));
  co_return ms;
}
Async<int> bad_at_two(int n) {
  co_await otp::sleep(1ms);
  if (n == 2) otp::exit(ExitReason::atom("bad"));
  co_return n;
}
int twice(int n) { return 2 * n; }

Async<TaskSupervisorRef> supervisor(uint64_t children_max = 0) {
  auto started = co_await TaskSupervisor::start_link({.children_max = children_max});
  co_return std::move(started).or_exit();
}
/// Waits until the supervisor has seen that its tasks have ended.
Async<void> require_no_children(TaskSupervisorRef sup) {
  uint64_t left = 1;
  for (int i = 0; i < 1000 && left > 0; ++i) {
    left = (co_await DynamicSupervisor::count_children(sup)).active;
    if (left > 0) co_await otp::sleep(1ms);
  }
  require(left == 0, std::to_string(left) + " children are left");
}

}  // namespace

TEST_CASE("a supervised task gives its value and is forgotten", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await supervisor();
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
      auto sup = co_await supervisor();
      auto task = co_await TaskSupervisor::async(sup, bad_at_two, 2);
      co_await task.yield(infinity);
      co_await otp::sleep(infinity);
    });
    require(reason.is("bad"), reason.to_string());
  });
}

TEST_CASE("TSK-017 the owner of an unlinked task that fails lives", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await supervisor();
    Holdings before = holdings();
    auto task = co_await TaskSupervisor::async_nolink(sup, bad_at_two, 2);
    Down down = co_await receive<Down>();
    require(down.reference == task.reference() && down.pid == task.pid(), "whose");
    require(down.reason.is("bad"), down.reason.to_string());
    auto again = co_await TaskSupervisor::async_nolink(sup, bad_at_two, 2);
    std::string reason;
    try {
      co_await again.await();
    } catch (const Exit& exit) {
      reason = exit.reason().to_string();
    }
    require(reason.find("{bad,{task,await,") == 0, reason);
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-018 children_max refuses a task and leaves nothing", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await supervisor(1);
    auto first = co_await TaskSupervisor::async(sup, sleeper, 1'000'000);
    Holdings before = holdings();
    for (bool link : {true, false}) {
      ExitReason reason;
      try {
        auto second = link ? co_await TaskSupervisor::async(sup, twice, 1)
                           : co_await TaskSupervisor::async_nolink(sup, twice, 1);
      } catch (const Exit& exit) {
        reason = exit.reason();
      }
      require(reason.is("max_children"), reason.to_string());
    }
    Result<Pid> third = co_await TaskSupervisor::start_child(sup, {}, twice, 1);
    require(third.error().is("max_children"), third.error().to_string());
    require((co_await TaskSupervisor::children(sup)).size() == 1, "unharmed");
    co_await require_nothing_left(before);
    require(!(co_await first.shutdown()), "shutdown");
  });
}

TEST_CASE("a task supervisor that is gone throws noproc", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await supervisor();
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

TEST_CASE("TSK-019 a task's child is restarted only if permanent", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    struct Ran {
      int n;
    };
    auto body = [](Pid main) -> Async<void> {
      (void)otp::send(main, Ran{1});
      co_await otp::sleep(1ms);
      otp::exit(ExitReason::atom("bad"));
    };
    auto sup = co_await supervisor();
    require((co_await TaskSupervisor::start_child(sup, {}, body, self())).ok(), "temporary");
    co_await receive<Ran>();
    co_await require_no_children(sup);
    require(!(co_await receive<Ran>(after(50ms))), "not restarted");
    TaskChildOptions permanent{.restart = Restart::permanent};
    Result<Pid> pid = co_await TaskSupervisor::start_child(sup, permanent, body, self());
    require(pid.ok(), "permanent");
    for (int i = 0; i < 3; ++i) co_await receive<Ran>();
    otp::unlink(sup.pid());
    otp::exit(sup.pid(), ExitReason::kill());
  });
}

TEST_CASE("the end of the supervisor ends its tasks", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await supervisor();
    auto task = co_await TaskSupervisor::async_nolink(sup, sleeper, 1'000'000);
    co_await otp::stop(sup);
    auto outcome = co_await task.yield(infinity);
    require(outcome && outcome->error().is("shutdown"), "shutdown");
  });
}

TEST_CASE("TSK-027 a nolink stream gives failures as results", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await supervisor();
    Holdings before = holdings();
    auto stream = TaskSupervisor::async_stream_nolink(sup, std::vector{1, 2, 3}, bad_at_two,
                                                      {.max_concurrency = 3});
    auto results = co_await stream.collect();
    require(results.size() == 3 && results[0].value() == 1 && results[2].value() == 3, "values");
    require(results[1].error().is("bad"), "reason");
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("a linked supervised stream, its order, limit and timeout", "[task_supervisor]") {
  simulate([]() -> Async<void> {
    auto sup = co_await supervisor();
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
    auto sup = co_await supervisor(3);
    Holdings before = holdings();
    {
      auto stream =
          TaskSupervisor::async_stream(sup, std::views::iota(1), sleeper, {.max_concurrency = 3});
      require((co_await stream.next())->value() == 1, "first");
    }
    co_await require_no_children(sup);
    co_await require_nothing_left(before);
    auto more = TaskSupervisor::async_stream_nolink(sup, std::views::iota(1000), sleeper,
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
        auto sup = co_await supervisor();
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
