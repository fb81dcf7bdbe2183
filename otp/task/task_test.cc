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

TEST_CASE("an awaited task is told from messages and other tasks", "[task]") {
  everywhere([]() -> Async<void> {
    (void)otp::send(self(), 1);
    auto a = Task::async(twice, 1);
    auto b = Task::async(twice, 2);
    (void)otp::send(self(), 2);
    require(co_await b.await() == 4, "b");
    require(co_await a.await() == 2, "a");
    require(co_await receive<int>() == 1, "order");
    require(co_await receive<int>() == 2, "order");
  });
}

TEST_CASE("a dropped task goes on and leaves nothing", "[task]") {
  everywhere([]() -> Async<void> {
    Holdings before = holdings();
    Pid pid;
    {
      auto task = Task::async(slowly, 1, ms(3));
      auto done = Task::async(twice, 1);
      pid = task.pid();
      while (is_alive(done.pid())) co_await otp::sleep(ms(1));
    }
    while (is_alive(pid)) co_await otp::sleep(ms(1));
    co_await require_nothing_left(before);
  });
}

TEST_CASE("awaiting twice is an argument error", "[task]") {
  simulate([]() -> Async<void> {
    auto task = Task::async(twice, 1);
    co_await task.await();
    try {
      (void)task.await();
      require(false, "no error");
    } catch (const std::invalid_argument&) {}
  });
}

TEST_CASE("a task finishing at its timeout leaves nothing whoever comes first", "[task]") {
  simulate(
      []() -> Async<void> {
        Holdings before = holdings();
        auto task = Task::async(slowly, 7, 50ms);
        auto outcome = co_await task.yield(50ms);
        if (!outcome) outcome = co_await task.shutdown();
        require(!outcome || outcome->value() == 7, "outcome");
        auto other = Task::async(slowly, 7, 50ms);
        co_await exit_of(other, 50ms);
        co_await require_nothing_left(before);
      },
      1000);
}

namespace {

struct Compute {
  int n = 0;
};
struct Seen {
  using Reply = std::vector<std::string>;
};

/// Takes the outcomes of its tasks as messages.
class Collector {
 public:
  void handle_cast(Compute message) {
    tasks_.push_back(std::make_unique<TaskOf<int>>(Task::async(twice, message.n)));
  }
  std::vector<std::string> handle_call(Seen) { return seen_; }
  void handle_info(TaskReply<int> reply) {
    bool mine = false;
    for (auto& task : tasks_) mine |= task->reference() == reply.reference;
    seen_.push_back((mine ? "mine " : "other ") + std::to_string(reply.value));
  }

 private:
  std::vector<std::unique_ptr<TaskOf<int>>> tasks_;
  std::vector<std::string> seen_;
};

}  // namespace

TEST_CASE("a server takes the result of a task in handle_info", "[task]") {
  everywhere([]() -> Async<void> {
    auto server = (co_await start_link<Collector>()).or_exit();
    (void)cast(server, Compute{4});
    std::vector<std::string> seen;
    while (seen.empty()) seen = co_await call(server, Seen{});
    require(seen == std::vector<std::string>{"mine 8"}, seen.front());
    co_await otp::stop(server.pid());
  });
}
