// What a System says at its end: what holds it, and what is left. Each test leaves something behind
// by going around the library's own care.

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "otp/base/atomic.h"
#include "otp/base/compiler.h"
#include "otp/base/log.h"
#include "otp/runtime/system.h"
#include "otp/runtime/testing/deaf_operation.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;
using otp::internal::LetterKind;

namespace {

SystemOptions telling(std::string& left) {
  SystemOptions options;
  options.on_leak = [&left](const std::string& what) { left += what; };
  return options;
}

bool has(const std::string& text, const std::string& part) {
  INFO("looking for " << part << " in: " << text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

Async<void> idle() { co_await otp::sleep(infinity); }

/// Keeps the log, and calls `on_line` with every line of it.
class Listener final : public LogSink {
 public:
  bool enabled(LogLevel level, std::string_view) const noexcept override {
    return level >= LogLevel::warning;
  }
  void log(LogRecord&& record) noexcept override {
    std::lock_guard lock(mutex_);
    text_ += record.message + "\n";
    if (text_.find(wanted_) != std::string::npos) heard_.store(true, internal::release);
  }
  /// heard() once all of the log contains this.
  explicit Listener(std::string wanted) : wanted_(std::move(wanted)) {}
  bool heard() const { return heard_.load(internal::acquire); }
  std::string text() {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  const std::string wanted_;
  std::mutex mutex_;
  std::string text_;  // guarded by mutex_
  Atomic<bool> heard_{false};
};

}  // namespace

TEST_CASE("a System that ended cleanly says nothing", "[leak]") {
  std::string left;
  auto busy = []() -> Async<void> {
    for (int i = 0; i < 50; ++i) {
      Pid pid = spawn_link(idle);
      (void)monitor(pid);
      (void)register_name("name" + std::to_string(i), pid);
      (void)otp::send(pid, 5);
      (void)send_after(1h, pid, 5);
    }
    co_await otp::sleep(1ms);
  };
  {
    Simulator simulator(3, telling(left));
    simulator.run(busy);
    simulator.spawn(busy);
  }
  CHECK(left == "");
  {
    SystemOptions options = telling(left);
    options.cores = 2;
    System system(options);
    system.run(busy);
    system.spawn(busy);
  }
  CHECK(left == "");
}

TEST_CASE("what is left is said with whose it is", "[leak]") {
  std::string left;
  std::string pid_text;
  SECTION("a name") {
    {
      Simulator simulator(1, telling(left));
      Pid pid = simulator.spawn(idle);
      pid_text = pid.to_string();
      REQUIRE(simulator.impl().names().add("ledger", pid.id) ==
              internal::NameTable::Outcome::registered);
      simulator.impl().slot_of(pid.id).state.fetch_and(~internal::kNamed, internal::relaxed);
    }
    has(left, "name ledger of " + pid_text);
  }
  SECTION("a letter") {
    internal::Letter* letter = nullptr;
    {
      Simulator simulator(1, telling(left));
      Pid pid = simulator.spawn([]() -> Async<void> { co_return; });
      pid_text = pid.to_string();
      simulator.run_until_idle();
      letter = internal::make_letter<int>(LetterKind::message, internal::plain_operation<int>, 5);
      letter->generation = static_cast<uint32_t>(pid.id >> 32);
      REQUIRE(simulator.impl().slot_of(pid.id).push(letter));  // and nobody schedules the slot
    }
    has(left, "a letter that nobody looked at: message int from nobody to " + pid_text);
    internal::free_letter(letter);
  }
  SECTION("the timer of a wait") {
    {
      Simulator simulator(1, telling(left));
      simulator.run(
          [](std::string* text) -> Async<void> {
            *text = self().to_string();
            internal::LibraryScope scope(internal::env());
            uint16_t core = 0;
            (void)internal::env().system->arm_timer(
                INT64_MAX - 2, self().id, internal::make_signal(LetterKind::timer), &core);
            co_return;
          },
          &pid_text);
    }
    has(left, "the wait timer of " + pid_text);
  }
  SECTION("ties to the dead") {
    {
      Simulator simulator(1, telling(left));
      simulator.spawn(
          [](std::string* text) -> Async<void> {
            Pid dead = spawn([]() -> Async<void> { co_return; });
            *text = dead.to_string();
            co_await otp::sleep(1ms);
            {
              internal::LibraryScope scope(internal::env());
              internal::self_process().watch(12345, dead.id);
            }
            co_await otp::sleep(infinity);
          },
          &pid_text);
      simulator.advance(1s);
    }
    has(left, "keeps what it owes to " + pid_text);
    has(left, "plain process, waits for the end of a sleep at ");
  }
}

#ifndef OTP_SANITIZED
TEST_CASE("blocks of memory that outlive a Simulator are named", "[leak]") {
  std::string left;
  internal::Letter* letter = nullptr;
  Async<void> frame;
  {
    Simulator simulator(1, telling(left));
    simulator.run(
        [](internal::Letter** kept, Async<void>* waits) -> Async<void> {
          *kept = internal::make_letter<int>(LetterKind::cast, internal::plain_operation<int>, 5);
          *waits = idle();
          co_return;
        },
        &letter, &frame);
  }
  has(left, "2 blocks of memory");
  has(left, "a letter: cast int");
  has(left, "a frame of ");
  internal::free_letter(letter);
}
#endif

TEST_CASE("a System that cannot end says which callback holds it, and ends when it may", "[leak]") {
  Listener listener("does not end");
  SystemOptions options;
  options.cores = 2;
  options.log = &listener;
  options.terminate_report_after = 20ms;
  options.stuck_after = 2ms;
  Pid pid;
  {
    System system(options);
    Atomic<bool> began{false};
    pid = system.spawn(
        [](Listener* until, Atomic<bool>* begun) {
          (void)register_name("stuck", self());
          begun->store(true, internal::release);
          while (!until->heard()) {}
        },
        &listener, &began);
    while (!began.load(internal::acquire)) {}
  }
  std::string text = listener.text();
  has(text, "terminate: still waiting for 1 processes: " + pid.to_string() + " (stuck)");
  has(text, "does not end; it is at\n");
}

TEST_CASE("a System that cannot end says which operation holds it, and where it is awaited",
          "[leak]") {
  Listener listener("operations outside to end");
  SystemOptions options;
  options.cores = 1;
  options.log = &listener;
  options.terminate_report_after = 20ms;
  internal::DeafOperation operation;
  Pid pid;
  Atomic<bool> waits{false};
  std::thread answerer;
  {
    System system(options);
    pid = system.spawn(
        [](internal::DeafOperation* deaf, Atomic<bool>* begun) -> Async<void> {
          begun->store(true, internal::release);
          internal::WaitForDeaf wait{deaf};
          co_await wait;
        },
        &operation, &waits);
    while (!waits.load(internal::acquire)) {}
    answerer = std::thread([&listener, &operation, &system] {
      while (!listener.heard()) std::this_thread::yield();
      internal::OutsideScope outside(system.impl());
      operation.answer();
    });
  }
  answerer.join();
  has(listener.text(), "terminate: " + pid.to_string() +
                           ", plain process, exiting with killed: waits for 1 operations outside "
                           "to end at ");
  has(listener.text(), "leak_check_test.cc:");
}

TEST_CASE("a System that cannot end says that functions that block hold it", "[leak]") {
  Listener listener("functions given to the blocking lane");
  SystemOptions options;
  options.cores = 1;
  options.log = &listener;
  options.terminate_report_after = 20ms;
  struct Function final : internal::BlockingPool::Work {
    Listener* until;
    Atomic<bool>* began;
    Function(Listener* listener, Atomic<bool>* begun) : until(listener), began(begun) {}
    void run() noexcept override {
      began->store(true, internal::release);
      while (!until->heard()) std::this_thread::yield();
    }
  };
  {
    System system(options);
    Atomic<bool> began{false};
    std::unique_ptr<internal::BlockingPool::Work> work =
        std::make_unique<Function>(&listener, &began);
    REQUIRE(system.impl().blocking().submit(work));
    while (!began.load(internal::acquire)) std::this_thread::yield();
  }
  has(listener.text(), "still waiting for 1 functions given to the blocking lane");
}

// A tenth of them in chains of links, a tenth trap exits, the rest wait in all ways there are.
TEST_CASE("a System with 100,000 processes ends", "[leak]") {
  auto fill = [](int count) -> Async<void> {
    for (int i = 0; i < count; ++i) {
      switch (i % 10) {
        case 0:
          spawn_link([]() -> Async<void> {  // a chain of ten, each linked to the one before
            auto next = [](auto self_call, int left) -> Async<void> {
              if (left > 0) spawn_link(self_call, self_call, left - 1);
              co_await otp::sleep(infinity);
            };
            co_await next(next, 8);
          });
          break;
        case 1:
          spawn([]() -> Async<void> {
            trap_exit(true);
            for (;;) (void)co_await receive<ExitMessage>();
          });
          break;
        case 2: spawn([]() -> Async<void> { (void)co_await receive<int>(after(1h)); }); break;
        case 3:
          spawn([]() -> Async<void> {
            for (;;) co_await otp::yield();
          });
          break;
        default: spawn(idle); break;
      }
    }
    co_return;
  };
  {
    Simulator simulator(5);
    simulator.spawn(fill, 50'000);
    for (int i = 0; i < 500'000 && simulator.process_count() < 60'000; ++i) (void)simulator.step();
    CHECK(simulator.process_count() >= 50'000);
  }
  SystemOptions options;
  options.cores = 2;
  uint64_t most = 0;
  {
    System system(options);
    system.run(
        [](Async<void> (*body)(int)) -> Async<void> {
          spawn(body, 75'000);
          co_return;
        },
        +fill);
    while (most < 100'000) most = system.process_count();
  }
  CHECK(most >= 100'000);
}
