#include "otp/async/async.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

using otp::Async;
using otp::internal::Driver;

namespace {

struct Gate {  // an awaiter that waits until somebody opens it
  otp::internal::PromiseBase* waiting = nullptr;
  bool await_ready() const { return false; }
  template <class P>
  void await_suspend(std::coroutine_handle<P> handle) {
    waiting = &handle.promise();
  }
  void await_resume() const {}
};

struct Witness {
  int* ended;
  explicit Witness(int* count) : ended(count) {}
  Witness(Witness&& other) noexcept : ended(std::exchange(other.ended, nullptr)) {}
  ~Witness() {
    if (ended) ++*ended;
  }
};

Async<int> one() { co_return 1; }
Async<int64_t> count_to(int64_t n) {
  int64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += co_await one();
  co_return sum;
}
Async<int> deep(int n) {
  if (n == 0) co_return 0;
  co_return 1 + co_await deep(n - 1);
}
Async<int> thrower() {
  throw std::runtime_error("boom");
  co_return 0;
}
Async<std::string> catcher() {
  try {
    co_await thrower();
  } catch (const std::runtime_error& e) {
    co_return e.what();
  }
  co_return "nothing";
}
Async<void> waits(Gate& gate, Witness) { co_await gate; }
Async<void> outer(Gate& gate, int* ended) {
  Witness witness(ended);
  co_await waits(gate, Witness(ended));
}
Async<int> deep_wait(Gate& gate, int n, int* ended) {
  Witness witness(ended);
  if (n == 0) co_await gate;
  if (n > 0) co_await deep_wait(gate, n - 1, ended);
  co_return 0;
}

template <class T>
T run(Async<T> async) {
  Driver driver;
  async.start(driver);
  while (driver.run(1000) == 0) {}
  REQUIRE(async.done());
  return async.take();
}

}  // namespace

TEST_CASE("R-006 awaiting what is done at once uses no stack", "[async]") {
  CHECK(run(count_to(5'000'000)) == 5'000'000);
}

TEST_CASE("R-006 an async may await itself 100,000 deep", "[async]") {
  CHECK(run(deep(100'000)) == 100'000);
}

TEST_CASE("an exception reaches the frame that awaits", "[async]") {
  CHECK(run(catcher()) == "boom");
  CHECK_THROWS_AS(run(thrower()), std::runtime_error);
}

TEST_CASE("a frame that waits goes on when it is resumed", "[async]") {
  int ended = 0;
  Gate gate;
  Driver driver;
  Async<void> async = outer(gate, &ended);
  async.start(driver);
  CHECK(driver.run(1000) > 0);
  CHECK_FALSE(async.done());
  CHECK(gate.waiting == driver.top());
  driver.resume_top();
  driver.run(1000);
  CHECK(async.done());
  CHECK(ended == 2);
}

TEST_CASE("destroying a chain runs every destructor without recursion", "[async]") {
  int ended = 0;
  Gate gate;
  Async<int> async = deep_wait(gate, 100'000, &ended);
  Driver driver;
  async.start(driver);
  while (driver.run(1000) == 0) {}
  driver.destroy();
  CHECK(ended == 100'001);
  CHECK_FALSE(driver.active());
}

TEST_CASE("an async that was never awaited frees its arguments", "[async]") {
  int ended = 0;
  Gate gate;
  { Async<void> never = waits(gate, Witness(&ended)); }
  CHECK(ended == 1);
}

TEST_CASE("the place of each wait is known", "[async]") {
  Gate gate;
  int ended = 0;
  Async<void> async = outer(gate, &ended);
  Driver driver;
  async.start(driver);
  driver.run(1000);
  std::string file = driver.top()->await_site.file_name();
  CHECK(file.find("async_test.cc") != std::string::npos);
  CHECK(driver.top()->await_site.line() > 0);
  CHECK(driver.top()->parent != nullptr);
}
