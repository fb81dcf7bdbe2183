#include <catch2/catch.hpp>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/task/task.h"
#include "tests/conformance/tasks.h"

using namespace otp;
using namespace otp::scene;
using namespace std::chrono_literals;

TEST_CASE("R-004 a stream leaves nothing behind", "[async_stream]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Holdings before = holdings();
    auto one = Task::async_stream(std::vector{1}, twice);
    require((co_await one.collect()).size() == 1, "one");
    require(holdings() == before, "one element");
    auto thousand = Task::async_stream(std::views::iota(0, 1000), twice, {.max_concurrency = 7});
    require((co_await thousand.collect()).size() == 1000, "thousand");
    require(holdings() == before, "1,000 elements");
    auto throwing =
        Task::async_stream(std::vector{1}, [](int) -> int { throw std::runtime_error("no"); });
    require(!(co_await throwing.collect()).front().ok(), "throws");
    require(holdings() == before, "one that throws");
  });
}

TEST_CASE("R-004 an item that finishes at its timeout leaves nothing behind", "[async_stream]") {
  simulate(
      []() -> Async<void> {
        trap_exit(true);
        Holdings before = holdings();
        uint64_t tasks = others();
        for (OnTimeout late : {OnTimeout::kill_task, OnTimeout::exit}) {
          auto stream =
              Task::async_stream(std::vector{49, 50, 51, 50}, sleeper,
                                 {.max_concurrency = 4, .timeout = 50ms, .on_timeout = late});
          try {
            Results results = co_await stream.collect();
            require(results.size() == 4 && results[0].ok(), text_of(results));
          } catch (const Exit&) {
            require(late == OnTimeout::exit, "exit");
          }
          require(holdings() == before, "left: " + holdings().to_string());
          require(others() == tasks, "tasks");
        }
        co_await require_nothing_left(before);
      },
      1000);
}

TEST_CASE("R-005 a stream that is dropped kills what runs", "[async_stream]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    uint64_t tasks = others();
    auto pulled = counter();
    {
      auto stream = Task::async_stream(Counting{pulled}, sleeper, {.max_concurrency = 4});
      for (int i = 0; i < 3; ++i) require((co_await stream.next())->value() == i, "in order");
    }
    require(pulled->load() <= 3 + 4, "pulled " + std::to_string(pulled->load()));
    require(holdings() == before, "links, monitors, messages are gone at once");
    co_await require_no_tasks(tasks);
    co_await require_nothing_left(before);
  });
}

TEST_CASE("R-005 close waits until the tasks are gone", "[async_stream]") {
  simulate([]() -> Async<void> {
    Holdings before = holdings();
    uint64_t tasks = others();
    auto stream = Task::async_stream(std::views::iota(0), sleeper, {.max_concurrency = 4});
    co_await stream.next();
    co_await stream.close();
    require(others() == tasks, "no task is left");
    require(holdings() == before, "nothing is left");
    require(!(co_await stream.next()), "it has ended");
    co_await stream.close();
  });
}

TEST_CASE("R-005 a consumer that throws in its loop leaves no task", "[async_stream]") {
  everywhere([]() -> Async<void> {
    uint64_t tasks = others();
    try {
      auto stream = Task::async_stream(std::views::iota(0), sleeper, {.max_concurrency = 4});
      while (auto result = co_await stream.next()) {
        if (result->value() == 2) throw std::runtime_error("enough");
      }
    } catch (const std::runtime_error&) {}
    co_await require_no_tasks(tasks);
  });
}

TEST_CASE("R-005 a source that throws reaches the consumer and ends the tasks", "[async_stream]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    uint64_t tasks = others();
    auto source = [n = 0]() mutable -> std::optional<int> {
      if (++n == 5) throw std::runtime_error("fifth");
      return n;
    };
    auto stream = Task::async_stream(source, endless, {.max_concurrency = 10});
    std::string thrown;
    try {
      co_await stream.next();
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    require(thrown == "fifth", "thrown: " + thrown);
    require(holdings() == before, "nothing is left");
    co_await require_no_tasks(tasks);
    require(!(co_await stream.next()), "it has ended");
  });
}

namespace {

Async<std::optional<int>> three_then_end(int* n) {
  co_await otp::sleep(ms(3));
  if (*n == 3) co_return std::nullopt;
  co_return ++*n;
}

}  // namespace

TEST_CASE("R-005 a source may wait, throw, and never go on", "[async_stream]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    int n = 0;
    auto stream = Task::async_stream([&n] { return three_then_end(&n); }, twice);
    require_text(co_await stream.collect(), "ok 2, ok 4, ok 6");
    require(holdings() == before, "nothing is left");

    auto throwing = Task::async_stream(
        []() -> Async<std::optional<int>> {
          co_await otp::sleep(ms(1));
          throw std::runtime_error("source");
        },
        twice);
    bool thrown = false;
    try {
      co_await throwing.next();
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    require(thrown, "thrown");

    uint64_t tasks = others();
    auto stuck = spawn_monitor([]() -> Async<void> {
      int count = 0;
      auto source = [](int* k) -> Async<std::optional<int>> {
        if (++*k > 2) co_await otp::sleep(infinity);
        co_return *k;
      };
      auto waiting =
          Task::async_stream([&] { return source(&count); }, endless, {.max_concurrency = 4});
      co_await waiting.collect();
    });
    co_await otp::sleep(ms(2));
    otp::exit(stuck.first, ExitReason::kill());
    require((co_await down_of(stuck.second)).is("killed"), "killed");
    co_await require_no_tasks(tasks);
  });
}

TEST_CASE("R-005 a slow first item does not start jobs without limit", "[async_stream]") {
  simulate(
      []() -> Async<void> {
        auto pulled = counter();
        auto body = [](int n) -> Async<int> {
          if (n == 0) co_await otp::sleep(1s);
          co_return n;
        };
        auto stream = Task::async_stream(Counting{pulled, 20'000}, body, {.max_concurrency = 8});
        require((co_await stream.next())->value() == 0, "first");
        require(pulled->load() <= 1 + 8, std::to_string(pulled->load()));
        int next = 1;
        while (auto result = co_await stream.next()) {
          require(result->value() == next, "order");
          ++next;
          require(pulled->load() <= next + 8, std::to_string(pulled->load()));
        }
        require(next == 20'000, "all");
      },
      3);
}

TEST_CASE("items and results may be large and movable only", "[async_stream]") {
  everywhere([]() -> Async<void> {
    std::vector<std::unique_ptr<std::string>> items;
    for (int i = 0; i < 50; ++i) items.push_back(std::make_unique<std::string>(500, 'x'));
    auto longer = [](std::unique_ptr<std::string> text) {
      *text += "y";
      return text;
    };
    auto stream = Task::async_stream(std::move(items), longer, {.max_concurrency = 4});
    int count = 0;
    while (auto result = co_await stream.next()) {
      require(result->value()->size() == 501, "size");
      ++count;
    }
    require(count == 50, "all");
    auto nothing = Task::async_stream(std::views::iota(0, 9), [](int) {});
    require((co_await nothing.collect()).size() == 9, "void");
  });
}

TEST_CASE("messages of others keep their order around a stream", "[async_stream]") {
  everywhere([]() -> Async<void> {
    Pid main = self();
    for (int i = 0; i < 10; ++i) (void)otp::send(main, i);
    auto stream =
        Task::async_stream(std::views::iota(10, 20), [main](int n) { (void)otp::send(main, n); },
                           {.max_concurrency = 1});
    while (co_await stream.next()) {}
    for (int i = 0; i < 20; ++i) require(co_await receive<int>() == i, "order");
  });
}
