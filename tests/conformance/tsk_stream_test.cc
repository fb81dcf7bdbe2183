#include <catch2/catch.hpp>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/runtime/system.h"
#include "otp/task/task.h"
#include "tests/conformance/tasks.h"

using namespace otp;
using namespace otp::scene;
using namespace std::chrono_literals;

TEST_CASE("TSK-020 results come in input order by default", "[async_stream]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    auto stream = Task::async_stream(std::vector{30, 1, 20}, sleeper, {.max_concurrency = 3});
    require_text(co_await stream.collect(), "ok 30, ok 1, ok 20");
    require(holdings() == before, "nothing is left");
  });
}

TEST_CASE("TSK-021 unordered results come as they are ready", "[async_stream]") {
  simulate([]() -> Async<void> {
    auto stream = Task::async_stream(std::vector{90, 1, 40}, sleeper,
                                     {.max_concurrency = 3, .ordered = false});
    require_text(co_await stream.collect(), "ok 1, ok 40, ok 90");
  });
}

TEST_CASE("TSK-022 never more than max_concurrency run", "[async_stream]") {
  everywhere([]() -> Async<void> {
    struct Load {
      Atomic<int> now{0};
      Atomic<int> most{0};
    };
    auto load = std::make_shared<Load>();
    auto body = [](std::shared_ptr<Load> load, int n) -> Async<int> {
      int now = load->now.fetch_add(1) + 1;
      int most = load->most.load();
      while (now > most && !load->most.compare_exchange_weak(most, now)) {}
      co_await otp::sleep(ms(1));
      load->now.fetch_sub(1);
      co_return n;
    };
    auto counted = [load, body](int n) { return body(load, n); };
    auto stream = Task::async_stream(std::views::iota(0, 20), counted, {.max_concurrency = 3});
    Results results = co_await stream.collect();
    require(results.size() == 20, "all");
    require(load->most.load() <= 3, std::to_string(load->most.load()) + " at once");
    require(!simulated() || load->most.load() == 3, "but three");
    for (int64_t wrong : {0, -1}) {
      try {
        auto none = Task::async_stream(std::vector{1}, twice, {.max_concurrency = wrong});
        require(false, "no error");
      } catch (const std::invalid_argument& error) {
        require(std::string(error.what()).find("at least 1, got ") != std::string::npos,
                error.what());
      }
    }
  });
}

TEST_CASE("TSK-022 the default concurrency is the number of cores", "[async_stream]") {
  SystemOptions options;
  options.cores = 2;
  System system(options);
  const int pulled = system.run([]() -> Async<int> {
    auto pulls = counter();
    auto stream = Task::async_stream(Counting{pulls}, sleeper);
    co_await stream.next();
    co_return pulls->load();
  });
  CHECK(pulled == 2);
}

TEST_CASE("TSK-023 a timeout ends the consumer by default", "[async_stream]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    uint64_t tasks = others();
    auto stream = Task::async_stream(std::vector{1, 500, 2, 600}, sleeper,
                                     {.max_concurrency = 4, .timeout = 50ms});
    std::string reason;
    try {
      co_await stream.collect();
    } catch (const Exit& exit) {
      reason = exit.reason().to_string();
    }
    require(reason == "{timeout,{task,async_stream,[50]}}", reason);
    require(others() == tasks, "the other tasks are gone");
    require(holdings() == before, "nothing is left");
    require(!(co_await stream.next()), "it has ended");
  });
}

TEST_CASE("TSK-024 kill_task ends only the slow one", "[async_stream]") {
  simulate([]() -> Async<void> {
    for (bool ordered : {true, false}) {
      Holdings before = holdings();
      uint64_t tasks = others();
      auto stream = Task::async_stream(std::vector{1, 500, 2}, sleeper,
                                       {.max_concurrency = 2,
                                        .timeout = 50ms,
                                        .on_timeout = OnTimeout::kill_task,
                                        .ordered = ordered});
      require_text(co_await stream.collect(),
                   ordered ? "ok 1, exit timeout, ok 2" : "ok 1, ok 2, exit timeout");
      require(others() == tasks, "the slow one is dead");
      require(holdings() == before, "nothing is left");
    }
  });
}

TEST_CASE("TSK-025 a failing body takes a linked consumer along", "[async_stream]") {
  everywhere([]() -> Async<void> {
    uint64_t tasks = others();
    ExitReason reason = co_await end_of([]() -> Async<void> {
      auto stream = Task::async_stream(std::vector{1, 2, 3}, bad_at_two, {.max_concurrency = 3});
      co_await stream.collect();
    });
    require(reason.is("bad"), reason.to_string());
    co_await require_no_tasks(tasks);
  });
}

TEST_CASE("TSK-026 a consumer that traps exits gets the reason as a result", "[async_stream]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Holdings before = holdings();
    auto stream = Task::async_stream(std::vector{1, 2, 3}, bad_at_two, {.max_concurrency = 3});
    require_text(co_await stream.collect(), "ok 1, exit bad, ok 3");
    require(holdings() == before, "nothing is left: " + holdings().to_string());
  });
}

TEST_CASE("TSK-028 zip_input_on_exit names the item", "[async_stream]") {
  simulate([]() -> Async<void> {
    trap_exit(true);
    auto stream = Task::async_stream(std::vector{1, 2, 3}, bad_at_two, {.zip_input_on_exit = true});
    require_text(co_await stream.collect(), "ok 1, exit {2,bad}, ok 3");
    auto slow = Task::async_stream(
        std::vector{1, 500}, sleeper,
        {.timeout = 50ms, .on_timeout = OnTimeout::kill_task, .zip_input_on_exit = true});
    require_text(co_await slow.collect(), "ok 1, exit {500,timeout}");
  });
}

TEST_CASE("TSK-029 R-005 a consumer that is killed takes all tasks along", "[async_stream]") {
  everywhere([]() -> Async<void> {
    uint64_t tasks = others();
    for (const char* atom : {"kill", "because"}) {
      auto consumer = spawn_monitor([]() -> Async<void> {
        auto stream = Task::async_stream(std::views::iota(1), endless, {.max_concurrency = 4});
        co_await stream.collect();
      });
      co_await otp::sleep(ms(2));
      otp::exit(consumer.first, ExitReason::atom(atom));
      ExitReason reason = co_await down_of(consumer.second);
      require(reason.is(atom) || reason.is("killed"), reason.to_string());
      co_await require_no_tasks(tasks);
    }
  });
}

TEST_CASE("TSK-030 an empty input, and one that ends at the limit", "[async_stream]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    auto none = Task::async_stream(std::vector<int>(), twice, {.max_concurrency = 3});
    require((co_await none.collect()).empty(), "empty");
    auto three = Task::async_stream(std::vector{1, 2, 3}, twice, {.max_concurrency = 3});
    require_text(co_await three.collect(), "ok 2, ok 4, ok 6");
    auto many = Task::async_stream(std::vector{1, 2, 3}, twice, {.max_concurrency = 10'000});
    require_text(co_await many.collect(), "ok 2, ok 4, ok 6");
    require(holdings() == before, "nothing is left");
  });
}
