#include "otp/task/task_supervisor.h"

#include <catch2/catch.hpp>
#include <ranges>
#include <string>
#include <vector>

#include "tests/conformance/tasks.h"

using namespace otp;
using namespace otp::scene;
using namespace std::chrono_literals;

TEST_CASE("TSK-017 the owner of an unlinked task that fails lives", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await task_supervisor();
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
    auto sup = co_await task_supervisor(1);
    auto first = co_await TaskSupervisor::async(sup, endless, 1);
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

TEST_CASE("TSK-019 a task's child is restarted only if permanent", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    struct Ran {
      int n;
    };
    auto body = [](Pid main) -> Async<void> {
      (void)otp::send(main, Ran{1});
      co_await otp::sleep(ms(1));
      otp::exit(ExitReason::atom("bad"));
    };
    auto sup = co_await task_supervisor();
    require((co_await TaskSupervisor::start_child(sup, {}, body, self())).ok(), "temporary");
    co_await receive<Ran>();
    co_await require_no_children(sup);
    require(!(co_await receive<Ran>(after(ms(50)))), "not restarted");
    otp::unlink(sup.pid());  // it gives up soon
    TaskChildOptions permanent{.restart = Restart::permanent};
    Result<Pid> pid = co_await TaskSupervisor::start_child(sup, permanent, body, self());
    require(pid.ok(), "permanent");
    for (int i = 0; i < 3; ++i) co_await receive<Ran>();
    otp::exit(sup.pid(), ExitReason::kill());
  });
}

TEST_CASE("TSK-027 a nolink stream gives failures as results", "[task_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await task_supervisor();
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
