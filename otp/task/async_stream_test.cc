#include <catch2/catch.hpp>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/task/task.h"
#include "tests/support/everywhere.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

using Results = std::vector<Result<int>>;

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

/// "ok 30, exit bad, ..."
std::string text_of(const Results& results) {
  std::string text;
  for (const Result<int>& each : results) {
    if (!text.empty()) text += ", ";
    text += each.ok() ? "ok " + std::to_string(each.value()) : "exit " + each.error().to_string();
  }
  return text;
}
void require_text(const Results& results, const std::string& expected) {
  require(text_of(results) == expected, "got: " + text_of(results));
}

/// Processes besides the one that asks. Exact once everything has settled.
uint64_t others() { return internal::env().system->process_count() - 1; }
Async<void> require_no_tasks(uint64_t before) {
  for (int i = 0; i < 1000 && others() > before; ++i) co_await otp::sleep(1ms);
  require(others() <= before, std::to_string(others()) + " processes are left");
}

/// Counts what it hands out.
struct Counting {
  std::shared_ptr<Atomic<int>> pulled;
  int end = 1 << 30;
  std::optional<int> operator()() {
    if (pulled->load() == end) return std::nullopt;
    return pulled->fetch_add(1);
  }
};
std::shared_ptr<Atomic<int>> counter() { return std::make_shared<Atomic<int>>(0); }

}  // namespace

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
    auto body = [load](int n) -> int {
      int now = load->now.fetch_add(1) + 1;
      int most = load->most.load();
      while (now > most && !load->most.compare_exchange_weak(most, now)) {}
      load->now.fetch_sub(1);
      return n;
    };
    auto stream = Task::async_stream(std::views::iota(0, 20), body, {.max_concurrency = 3});
    Results results = co_await stream.collect();
    require(results.size() == 20, "all");
    require(load->most.load() <= 3, std::to_string(load->most.load()));
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
  system.run([]() -> Async<void> {
    auto pulled = counter();
    auto stream = Task::async_stream(Counting{pulled}, sleeper);
    co_await stream.next();
    require(pulled->load() == 2, std::to_string(pulled->load()));
  });
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
        auto stream = Task::async_stream(std::views::iota(1000), sleeper, {.max_concurrency = 4});
        co_await stream.collect();
      });
      co_await otp::sleep(2ms);
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
      return 10'000 * n;
    };
    auto stream = Task::async_stream(source, sleeper, {.max_concurrency = 10});
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
  co_await otp::sleep(3ms);
  if (*n == 3) co_return std::nullopt;
  co_return ++*n;
}

}  // namespace

TEST_CASE("a source may wait, throw, and never go on", "[async_stream]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    int n = 0;
    auto stream = Task::async_stream([&n] { return three_then_end(&n); }, twice);
    require_text(co_await stream.collect(), "ok 2, ok 4, ok 6");
    require(holdings() == before, "nothing is left");

    auto throwing = Task::async_stream(
        []() -> Async<std::optional<int>> {
          co_await otp::sleep(1ms);
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
        co_return 1000;
      };
      auto endless =
          Task::async_stream([&] { return source(&count); }, sleeper, {.max_concurrency = 4});
      co_await endless.collect();
    });
    co_await otp::sleep(2ms);
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
