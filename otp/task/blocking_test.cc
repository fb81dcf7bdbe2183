#include "otp/task/blocking.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>

#include "otp/runtime/system.h"
#include "tests/conformance/scene.h"
#include "tests/support/holdings.h"

using namespace otp;
using namespace otp::scene;
using testing::Holdings;
using testing::holdings;
using testing::require_nothing_left;
using namespace std::chrono_literals;

namespace {

/// A gate for threads: functions of the blocking lane wait here until it opens.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void await_arrivals(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

/// Tells when it is destroyed; a value that a function owns.
struct Owned {
  explicit Owned(Atomic<int>* count) : destroyed(count) {}
  Owned(Owned&& other) noexcept : destroyed(std::exchange(other.destroyed, nullptr)) {}
  ~Owned() {
    if (destroyed != nullptr) destroyed->fetch_add(1);
  }
  Atomic<int>* destroyed;
};

struct Note {
  int value = 0;
};

}  // namespace

TEST_CASE("blocking gives back the function's value, void or exception", "[blocking]") {
  everywhere([]() -> Async<void> {
    std::string text = co_await blocking([](std::string a, int b) { return a + std::to_string(b); },
                                         std::string("x"), 7);
    require(text == "x7", text);
    co_await blocking([] {});
    bool thrown = false;
    try {
      co_await blocking([] { throw std::runtime_error("no file"); });
    } catch (const std::runtime_error& error) {
      thrown = std::string(error.what()) == "no file";
    }
    require(thrown, "the exception comes back");
    Result<int> value = co_await try_blocking([] { return 3; });
    require(value.ok() && value.value() == 3, "try_blocking");
    require(!co_await receive<Note>(after(0s)), "nothing is left");
  });
}

TEST_CASE("a function on the blocking lane may send", "[blocking]") {
  everywhere([]() -> Async<void> {
    co_await blocking([](Pid to) { (void)send(to, Note{9}); }, self());
    require((co_await receive<Note>()).value == 9, "note");
  });
}

TEST_CASE("blocking holds no core", "[blocking]") {
  SystemOptions options;
  options.cores = 1;
  Gate gate;
  System system(options);
  Pid waiter = system.spawn(
      [](Gate* at) -> Async<void> {
        co_await blocking([](Gate* g) { g->pass(); }, at);
        co_await receive<Note>();
      },
      &gate);
  gate.await_arrivals(1);
  CHECK(system.run([]() -> Async<int> { co_return 1; }) == 1);
  CHECK(system.is_alive(waiter));
  gate.open();
}

TEST_CASE("a killed waiter lets its function finish and drops the result", "[blocking]") {
  SystemOptions options;
  options.cores = 2;
  Gate gate;
  Atomic<int> destroyed{0};
  Atomic<int> finished{0};
  System system(options);
  Pid waiter = system.spawn(
      [](Gate* at, Atomic<int>* gone, Atomic<int>* done) -> Async<void> {
        co_await blocking(
            [](Gate* g, Owned owned, Atomic<int>* d) {
              g->pass();
              d->fetch_add(owned.destroyed != nullptr);
            },
            at, Owned(gone), done);
      },
      &gate, &destroyed, &finished);
  gate.await_arrivals(1);
  ExitReason reason = system.run(
      [](Pid pid) -> Async<ExitReason> {
        monitor(pid);
        otp::exit(pid, ExitReason::kill());
        co_return (co_await receive<Down>()).reason;
      },
      waiter);
  CHECK(reason.is("killed"));
  CHECK(destroyed.load() == 0);
  CHECK(finished.load() == 0);
  gate.open();
  system.run([]() -> Async<void> { co_await blocking([] {}); });
  while (destroyed.load() == 0) system.run([]() -> Async<void> { co_await blocking([] {}); });
  CHECK(finished.load() == 1);
}

TEST_CASE("a full lane refuses with system_limit", "[blocking]") {
  SystemOptions options;
  options.cores = 1;
  options.blocking_threads_max = 1;
  options.blocking_queue_max = 1;
  Gate gate;
  System system(options);
  auto occupy = [](Gate* at) -> Async<void> { co_await blocking([](Gate* g) { g->pass(); }, at); };
  system.spawn(occupy, &gate);
  gate.await_arrivals(1);
  system.spawn(occupy, &gate);
  system.run([]() -> Async<void> { co_await yield(); });
  system.run([]() -> Async<void> {
    Result<void> full = co_await try_blocking([] {});
    require(full.error().is("system_limit"), full.error().to_string());
    bool thrown = false;
    try {
      co_await blocking([] {});
    } catch (const Exit& exit) {
      thrown = exit.reason().is("system_limit");
    }
    require(thrown, "blocking throws");
    co_await otp::sleep(1ms);
  });
  gate.open();
}

TEST_CASE("R-038 without any thread of the lane the reason is system_limit", "[blocking]") {
  SystemOptions options;
  options.cores = 1;
  options.blocking_threads_max = 0;
  System system(options);
  Result<void> none =
      system.run([]() -> Async<Result<void>> { co_return co_await try_blocking([] {}); });
  CHECK(none.error().is("system_limit"));
}

TEST_CASE("a System ends while functions run and wait on its lane", "[blocking]") {
  for (int round = 0; round < 20; ++round) {
    Atomic<int> destroyed{0};
    Atomic<int> started{0};
    {
      SystemOptions options;
      options.cores = 2;
      options.blocking_threads_max = 2;
      System system(options);
      for (int i = 0; i < 50; ++i) {
        system.spawn(
            [](Atomic<int>* gone, Atomic<int>* begun) -> Async<void> {
              Owned owned(gone);
              begun->fetch_add(1);
              co_await blocking(
                  [](Owned) {
                    for (int k = 0; k < 1000; ++k) std::string(64, 'x').find('y');
                  },
                  std::move(owned));
            },
            &destroyed, &started);
      }
    }
    CHECK(destroyed.load() == started.load());
  }
}
