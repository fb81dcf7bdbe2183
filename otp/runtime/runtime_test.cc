#include "otp/runtime/runtime.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "otp/runtime/system.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

struct Note {
  int value = 0;
};
struct Text {
  std::string text;
};
struct Big {
  std::array<int64_t, 40> values{};
};

Async<void> wait_for_ever() {
  co_await receive<Note>([](const Note&) { return false; });
}

/// Runs `test` in the Simulator for some seeds and then on threads.
template <class F>
void everywhere(F test, int rounds = 20) {
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(rounds); ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed);
    simulator.run(test);
  }
  SystemOptions options;
  options.cores = 2;
  System system(options);
  for (int round = 0; round < rounds; ++round) system.run(test);
}

}  // namespace

TEST_CASE("a process returns its value to the thread that runs it", "[runtime]") {
  Simulator simulator(1);
  CHECK(simulator.run([](int a) -> Async<int> { co_return a + 1; }, 41) == 42);
  CHECK_THROWS_AS(simulator.run([]() -> Async<int> { throw std::runtime_error("x"); }),
                  std::runtime_error);
}

TEST_CASE("messages of several types and sizes keep their contents", "[runtime]") {
  everywhere([]() -> Async<void> {
    Big big;
    big.values[39] = 7;
    (void)send(self(), Text{std::string(1000, 'x')});
    (void)send(self(), big);
    (void)send(self(), Note{5});
    auto first = co_await receive<Note, Big>();
    if (std::get<Big>(first).values[39] != 7) throw std::logic_error("big");
    if ((co_await receive<Text>()).text.size() != 1000) throw std::logic_error("text");
    if ((co_await receive<Note>()).value != 5) throw std::logic_error("note");
  });
}

TEST_CASE("one seed gives one trace and another seed another", "[simulator]") {
  auto trace = [](uint64_t seed) {
    Simulator simulator(seed);
    simulator.run([]() -> Async<void> {
      for (int i = 0; i < 10; ++i) {
        spawn(
            [](Pid to, int n) -> Async<void> {
              co_await otp::sleep(std::chrono::milliseconds(n % 3));
              (void)send(to, Note{n});
            },
            self(), i);
      }
      for (int i = 0; i < 10; ++i) co_await receive<Note>();
    });
    return simulator.trace_hash();
  };
  CHECK(trace(7) == trace(7));
  CHECK(trace(7) != trace(8));
}

TEST_CASE("a System ends with 1,000 processes in every state", "[runtime]") {
  SystemOptions options;
  options.cores = 2;
  System system(options);
  for (int i = 0; i < 250; ++i) {
    system.spawn(wait_for_ever);
    system.spawn([]() -> Async<void> { co_await otp::sleep(1h); });
    system.spawn([]() -> Async<void> {
      for (;;) co_await yield();
    });
    system.spawn([]() -> Async<void> {
      spawn_link(wait_for_ever);
      co_await wait_for_ever();
    });
  }
}

TEST_CASE("letters to slots that died, were reused, and ran out of generations",
          "[runtime][slots]") {
  SystemOptions options;
  options.generations_max = 15;
  Simulator simulator(5, options);
  simulator.run([]() -> Async<void> {
    std::vector<Pid> dead;
    for (int i = 0; i < 5000; ++i) {
      auto [pid, ref] = spawn_monitor([]() -> Async<void> { co_return; });
      co_await receive<Down>();
      CHECK(pid.generation() <= 15);
      dead.push_back(pid);
    }
    for (Pid pid : dead) {
      (void)send(pid, Text{"dropped"});
      Reference ref = monitor(pid);
      Down down = co_await receive<Down>();
      CHECK(down.reference == ref);
      CHECK(down.reason.is("noproc"));
    }
  });
}

TEST_CASE("a callback that spins loses its core and others go on", "[runtime][stuck]") {
  SystemOptions options;
  options.cores = 1;
  System system(options);
  Atomic<bool> stop{false};
  Atomic<int> casts{0};
  Pid spinner = system.spawn(
      [](Atomic<bool>* stop_flag, Atomic<int>* count) {
        Pid counter = spawn(
            [](Atomic<int>* seen) -> Async<void> {
              for (int expected = 0;; ++expected) {
                Note note = co_await receive<Note>();
                if (note.value != expected) otp::exit(ExitReason::atom("out_of_order"));
                seen->fetch_add(1);
              }
            },
            count);
        int sent = 0;
        while (!stop_flag->load()) {
          if (sent <= count->load() + 10) (void)send(counter, Note{sent++});
        }
      },
      &stop, &casts);
  for (int i = 0; i < 100; ++i) {
    CHECK(system.run([]() -> Async<int> { co_return 7; }) == 7);
  }
  while (casts.load() < 1000) {
    CHECK(system.run([]() -> Async<int> { co_return 7; }) == 7);
  }
  stop.store(true);
  CHECK(system.run(
      [](Pid pid) -> Async<bool> {
        monitor(pid);
        ExitReason reason = (co_await receive<Down>()).reason;
        co_return reason.is_normal() || reason.is("noproc");
      },
      spinner));
}
