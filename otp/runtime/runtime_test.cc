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

TEST_CASE("MBX-001 messages of one sender are received in order", "[runtime]") {
  everywhere([]() -> Async<void> {
    Pid main = self();
    spawn(
        [](Pid to) -> Async<void> {
          for (int i = 0; i < 1000; ++i) co_await send(to, Note{i});
        },
        main);
    for (int i = 0; i < 1000; ++i) {
      Note note = co_await receive<Note>();
      if (note.value != i) throw std::logic_error("out of order");
    }
  });
}

TEST_CASE("MBX-003 a selective receive takes the oldest match and keeps the rest", "[runtime]") {
  everywhere([]() -> Async<void> {
    for (int i = 1; i <= 4; ++i) (void)send(self(), Note{i});
    std::string order;
    order +=
        std::to_string((co_await receive<Note>([](const Note& n) { return n.value == 3; })).value);
    for (int i = 0; i < 3; ++i) order += std::to_string((co_await receive<Note>()).value);
    if (order != "3124") throw std::logic_error(order);
  });
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

TEST_CASE("MBX-007 a receive with timeout zero looks at the whole mailbox", "[runtime]") {
  everywhere([]() -> Async<void> {
    (void)send(self(), Note{1});
    (void)send(self(), Text{"here"});
    auto text = co_await receive<Text>(after(0s));
    if (!text || text->text != "here") throw std::logic_error("not found");
    if (co_await receive<Text>(after(0s))) throw std::logic_error("found twice");
  });
}

TEST_CASE("MBX-008 a receive never gives up early", "[runtime]") {
  Simulator simulator(3);
  simulator.run(
      [](Simulator* sim) -> Async<void> {
        auto before = sim->now();
        auto none = co_await receive<Note>(after(250ms));
        CHECK_FALSE(none.has_value());
        CHECK(sim->now() - before >= 250ms);
        CHECK(sim->now() - before < 251ms);
      },
      &simulator);
}

TEST_CASE("SIG-001 a linked process ends with the same reason", "[runtime][signals]") {
  everywhere([]() -> Async<void> {
    auto [middle, ref] = spawn_monitor([]() -> Async<void> {
      spawn_link([]() -> Async<void> {
        otp::exit(ExitReason::atom("bad"));
        co_return;
      });
      co_await wait_for_ever();
    });
    Down down = co_await receive<Down>();
    if (!(down.reference == ref && down.pid == middle && down.reason.is("bad"))) {
      throw std::logic_error(down.reason.to_string());
    }
  });
}

TEST_CASE("SIG-003 a trapping process gets one exit message", "[runtime][signals]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid child = spawn_link([]() -> Async<void> { co_return; });
    ExitMessage message = co_await receive<ExitMessage>();
    if (message.from != child || !message.reason.is_normal()) throw std::logic_error("wrong");
  });
}

TEST_CASE("SIG-007 kill cannot be trapped and gives killed", "[runtime][signals]") {
  everywhere([]() -> Async<void> {
    auto [pid, ref] = spawn_monitor([]() -> Async<void> {
      trap_exit(true);
      co_await wait_for_ever();
    });
    otp::exit(pid, ExitReason::kill());
    Down down = co_await receive<Down>();
    if (!down.reason.is("killed") || down.reference != ref) throw std::logic_error("not killed");
  });
}

TEST_CASE("SIG-015 an exception is a reason with type, text and stack", "[runtime][signals]") {
  everywhere(
      []() -> Async<void> {
        auto spawned = spawn_monitor([]() -> Async<void> {
          throw std::runtime_error("boom");
          co_return;
        });
        Down down = co_await receive<Down>();
        std::string text = down.reason.to_string();
        if (down.pid != spawned.first || text.find("{{std::runtime_error,\"boom\"},") != 0) {
          throw std::logic_error(text);
        }
      },
      5);
}

TEST_CASE("SIG-026 monitoring the dead gives noproc at once", "[runtime][signals]") {
  everywhere([]() -> Async<void> {
    auto [pid, ref] = spawn_monitor([]() -> Async<void> { co_return; });
    co_await receive<Down>();
    Reference again = monitor(pid);
    Down down = co_await receive<Down>();
    if (down.reference != again || !down.reason.is("noproc") || ref == again) {
      throw std::logic_error("wrong");
    }
  });
}

TEST_CASE("SIG-023 after unlink no exit of the other arrives", "[runtime][signals]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    for (int i = 0; i < 20; ++i) {
      Pid child = spawn_link([]() -> Async<void> { co_return; });
      if (i % 2) co_await yield();
      unlink(child);
      (void)co_await receive<ExitMessage>([child](const ExitMessage& m) { return m.from == child; },
                                          after(0s));
      Reference ref = monitor(child);
      co_await receive<Down>([ref](const Down& d) { return d.reference == ref; });
      if (co_await receive<ExitMessage>(after(0s))) throw std::logic_error("an exit after unlink");
    }
  });
}

TEST_CASE("SIG-030 after demonitor no DOWN arrives", "[runtime][signals]") {
  everywhere([]() -> Async<void> {
    Pid child = spawn([]() -> Async<void> { co_await receive<Note>(); });
    Reference ref = monitor(child);
    if (!demonitor(ref)) throw std::logic_error("was not active");
    (void)send(child, Note{});
    Reference second = monitor(child);
    Down down = co_await receive<Down>();
    if (down.reference != second) throw std::logic_error("DOWN of a removed monitor");
  });
}

TEST_CASE("SIG-036 a name is free before the death is announced", "[runtime][names]") {
  everywhere([]() -> Async<void> {
    for (int i = 0; i < 50; ++i) {
      auto [pid, ref] = spawn_monitor([]() -> Async<void> { co_await receive<Note>(); });
      if (!register_name("counter", pid)) throw std::logic_error("the name was still taken");
      if (whereis("counter") != pid) throw std::logic_error("somebody else has the name");
      (void)send(pid, Note{});
      Down down = co_await receive<Down>();
      if (down.reference != ref || whereis("counter")) throw std::logic_error("still there");
    }
  });
}

TEST_CASE("MBX-013 a cancelled timer never fires and says what was left", "[runtime][timers]") {
  Simulator simulator(1);
  simulator.run([]() -> Async<void> {
    TimerRef timer = send_after(1000ms, self(), Note{1});
    CHECK(read_timer(timer) == Duration(1000ms));
    co_await otp::sleep(400ms);
    CHECK(cancel_timer(timer) == Duration(600ms));
    CHECK_FALSE(cancel_timer(timer).has_value());
    CHECK_FALSE(co_await receive<Note>(after(5s)));
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
