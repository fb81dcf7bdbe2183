#include "otp/task/task.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "tests/conformance/tasks.h"

using namespace otp;
using namespace otp::scene;
using namespace std::chrono_literals;

namespace {

Async<int> fail_with(const char* atom) {
  co_await otp::sleep(ms(1));
  otp::exit(ExitReason::atom(atom));
}
Async<int> stubborn() {
  trap_exit(true);
  co_return co_await endless(1);
}

}  // namespace

TEST_CASE("TSK-001 await gives the value and leaves nothing", "[task]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    auto plain = Task::async(twice, 21);
    auto waiting = Task::async(slowly, 7, ms(5));
    auto nothing = Task::async([] {});
    auto text = Task::async([](std::string a) { return a + "!"; }, std::string("hello"));
    require(co_await text.await() == "hello!", "text");
    require(co_await plain.await() == 42, "plain");
    require(co_await waiting.await() == 7, "waiting");
    co_await nothing.await();
    require(!is_alive(plain.pid()), "the process is gone when its result is there");
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-001 an owner that traps exits finds nothing either", "[task]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Holdings before = holdings();
    auto good = Task::async(slowly, 7, ms(1));
    require(co_await good.await() == 7, "value");
    auto bad = Task::async(fail_with, "bad");
    require(first_of(co_await exit_of(bad)).is_atom("bad"), "reason");
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-002 a crash takes the owner along through the link", "[task]") {
  everywhere([]() -> Async<void> {
    ExitReason reason = co_await end_of([]() -> Async<void> {
      auto task = Task::async(fail_with, "bad");
      co_await task.yield(infinity);
      co_await otp::sleep(infinity);
    });
    require(reason.is("bad"), reason.to_string());
  });
}

TEST_CASE("TSK-003 await of a failed task exits with its reason", "[task]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    auto task = Task::async(fail_with, "bad");
    ExitReason reason = co_await exit_of(task);
    require(reason.to_string().find("{bad,{task,await,[#Ref<") == 0, reason.to_string());
    auto throwing = Task::async([]() -> int { throw std::runtime_error("no luck"); });
    ExitReason thrown = co_await exit_of(throwing);
    require(thrown.to_string().find("{{{std::runtime_error,\"no luck\"}") == 0, thrown.to_string());
  });
}

TEST_CASE("TSK-004 a task that ends normally without a result ends await at once", "[task]") {
  everywhere([]() -> Async<void> {
    auto task = Task::async(fail_with, "normal");
    ExitReason reason = co_await exit_of(task, infinity);
    require(first_of(reason).is_atom("normal"), reason.to_string());
  });
}

TEST_CASE("TSK-005 a timeout leaves the task alone and its result reaches nobody", "[task]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    auto task = Task::async(slowly, 7, 10s);
    Pid pid = task.pid();
    const Duration start = now();
    ExitReason reason;
    try {
      co_await task.await();
    } catch (const Exit& exit) {
      reason = exit.reason();
    }
    const Duration waited = now() - start;
    require(waited >= 5s && waited < 5100ms, "5 s by default");
    require(reason.to_string().find("{timeout,{task,await,") == 0, reason.to_string());
    require(is_alive(pid), "not stopped");
    co_await otp::sleep(10s);
    require(!is_alive(pid), "ended by itself");
    auto short_wait = Task::async(slowly, 7, 100ms);
    const Duration before_it = now();
    reason = co_await exit_of(short_wait, 20ms);
    require(now() - before_it >= 20ms && now() - before_it < 30ms, "the time given");
    co_await otp::sleep(1s);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-006 only the owner may await, yield, shut down or ignore", "[task]") {
  everywhere([]() -> Async<void> {
    auto task = std::make_unique<TaskOf<int>>(Task::async(endless, 1));
    auto try_all = [](TaskOf<int>* other, Pid owner) -> Async<void> {
      int refused = 0;
      auto refuse = [&](auto call) {
        try {
          (void)call();
        } catch (const std::invalid_argument& error) {
          refused += std::string(error.what()).find(owner.to_string()) != std::string::npos;
        }
      };
      refuse([&] { return other->await(); });
      refuse([&] { return other->yield(); });
      refuse([&] { return other->shutdown(); });
      refuse([&] { return other->ignore(); });
      require(refused == 4, std::to_string(refused));
      co_return;
    };
    auto spawned = spawn_monitor(try_all, task.get(), self());
    ExitReason reason = co_await down_of(spawned.second);
    require(reason.is_normal(), reason.to_string());
    require(!(co_await task->shutdown(Shutdown::brutal_kill)), "shutdown");
  });
}

TEST_CASE("TSK-007 the end of the owner ends a linked task", "[task]") {
  everywhere([]() -> Async<void> {
    struct Started {
      Pid pid;
    };
    auto owner = spawn_monitor(
        [](Pid main) -> Async<void> {
          auto task = Task::async(endless, 1);
          (void)otp::send(main, Started{task.pid()});
          (void)co_await receive<Started>();
          otp::exit(ExitReason::atom("owner_gone"));
        },
        self());
    Pid task = (co_await receive<Started>()).pid;
    Reference watch = monitor(task);
    (void)otp::send(owner.first, Started{});
    ExitReason reason = co_await down_of(watch);
    require(reason.is("owner_gone"), reason.to_string());
    require((co_await down_of(owner.second)).is("owner_gone"), "owner");
  });
}

TEST_CASE("TSK-008 yield tells value, not yet, and the reason", "[task]") {
  simulate([]() -> Async<void> {
    trap_exit(true);
    Holdings before = holdings();
    auto task = Task::async(slowly, 7, 100ms);
    require(!(co_await task.yield(0s)), "look once");
    require(!(co_await task.yield(50ms)), "too early");
    auto value = co_await task.yield(100ms);
    require(value && value->ok() && value->value() == 7, "value");
    auto bad = Task::async(fail_with, "bad");
    auto reason = co_await bad.yield(1s);
    require(reason && reason->error().is("bad"), "reason");
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-009 shutdown of a running task leaves nothing", "[task]") {
  everywhere([]() -> Async<void> {
    for (bool trap : {false, true}) {
      trap_exit(trap);
      Holdings before = holdings();
      auto task = Task::async(endless, 7);
      Pid pid = task.pid();
      Reference watch = monitor(pid);
      require(!(co_await task.shutdown()), "nothing");
      require(!is_alive(pid), "dead");
      require((co_await down_of(watch)) == ExitReason::shutdown(), "by shutdown");
      auto done = Task::async(twice, 4);
      co_await otp::sleep(ms(1));
      auto value = co_await done.shutdown();
      require(!value || value->value() == 8, "the value if it had ended");
      co_await require_nothing_left(before);
    }
  });
}

TEST_CASE("TSK-010 a stubborn task is killed after the time", "[task]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    auto task = Task::async(stubborn);
    co_await otp::sleep(ms(1));
    const Duration start = now();
    auto outcome = co_await task.shutdown(30ms);
    require(now() - start >= 30ms && now() - start < 40ms, "after 30 ms");
    require(outcome && outcome->error().is("killed"), "killed");
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-011 brutal_kill", "[task]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Holdings before = holdings();
    auto running = Task::async(stubborn);
    require(!(co_await running.shutdown(Shutdown::brutal_kill)), "nothing");
    auto dead = Task::async(fail_with, "bad");
    while (is_alive(dead.pid())) co_await otp::sleep(ms(1));
    auto outcome = co_await dead.shutdown(Shutdown::brutal_kill);
    require(outcome && outcome->error().is("bad"), "reason");
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-012 ignore lets the task go", "[task]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    auto replied = Task::async(twice, 4);
    co_await otp::sleep(ms(1));
    auto value = replied.ignore();
    require(value && value->value() == 8, "value");

    trap_exit(true);
    auto dead = Task::async(fail_with, "bad");
    co_await otp::sleep(5ms);
    auto reason = dead.ignore();
    require(reason && reason->error().is("bad"), "reason");
    trap_exit(false);

    auto running = Task::async(slowly, 1, 10ms);
    auto crashing = Task::async(fail_with, "bad");
    Pid pid = running.pid();
    require(!running.ignore() && !crashing.ignore(), "nothing");
    require(is_alive(pid), "goes on");
    co_await otp::sleep(20ms);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-013 await_many gives the values in the order of the tasks", "[task]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    std::vector<TaskOf<int>> tasks;
    for (int n : {30, 1, 20}) tasks.push_back(Task::async(slowly, n, std::chrono::milliseconds(n)));
    std::vector<int> values = co_await Task::await_many(std::move(tasks));
    require(values == std::vector<int>{30, 1, 20}, "values");
    require((co_await Task::await_many(std::vector<TaskOf<int>>())).empty(), "empty");

    std::vector<TaskOf<int>> late;
    for (int n : {30, 60}) late.push_back(Task::async(slowly, n, std::chrono::milliseconds(n)));
    ExitReason reason;
    try {
      co_await Task::await_many(std::move(late), 50ms);
    } catch (const Exit& exit) {
      reason = exit.reason();
    }
    require(reason.to_string().find("{timeout,{task,await_many,") == 0, reason.to_string());
    co_await otp::sleep(1s);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-014 yield_many tells each outcome, and what becomes of the late", "[task]") {
  simulate([]() -> Async<void> {
    trap_exit(true);
    Holdings before = holdings();
    for (OnLate late : {OnLate::nothing, OnLate::ignore, OnLate::kill_task}) {
      std::vector<TaskOf<int>> tasks;
      tasks.push_back(Task::async(slowly, 1, 1ms));
      tasks.push_back(Task::async(slowly, 2, 1s));
      tasks.push_back(Task::async(fail_with, "bad"));
      Pid slow = tasks[1].pid();
      auto outcomes = co_await Task::yield_many(tasks, {.timeout = 50ms, .on_timeout = late});
      require(outcomes.size() == 3 && outcomes[0]->value() == 1, "value");
      require(!outcomes[1], "late");
      require(outcomes[2]->error().is("bad"), "reason");
      require(is_alive(slow) == (late != OnLate::kill_task), "the late one");
      if (late == OnLate::nothing) require(co_await tasks[1].await() == 2, "asked again");
    }
    co_await otp::sleep(2s);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-015 a completed task needs no process", "[task]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    auto task = Task::completed(std::string("a"));
    require(co_await task.await(0s) == "a", "await");
    auto yielded = Task::completed(1);
    require((co_await yielded.yield(0s))->value() == 1, "yield");
    auto stopped = Task::completed(2);
    require((co_await stopped.shutdown())->value() == 2, "shutdown");
    auto ignored = Task::completed(3);
    require(ignored.ignore()->value() == 3, "ignore");
    require(!task.pid(), "no process");
    co_await require_nothing_left(before);
  });
}

TEST_CASE("TSK-016 start and start_link", "[task]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    for (const char* atom : {"normal", "bad"}) {
      Reference ended = monitor(Task::start(fail_with, atom));
      ExitReason reason = co_await down_of(ended);
      require(reason.is(atom) || reason.is("noproc"), reason.to_string());
    }
    Reference ended = monitor(Task::start_link([] {}));
    require((co_await down_of(ended)).to_string().substr(0, 2) == "no", "normal or noproc");
    ExitReason reason = co_await end_of([]() -> Async<void> {
      Task::start_link(fail_with, "bad");
      co_await otp::sleep(infinity);
    });
    require(reason.is("bad"), reason.to_string());
    co_await require_nothing_left(before);
  });
}
