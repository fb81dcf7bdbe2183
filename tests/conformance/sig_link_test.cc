// Links: who hears of whose end.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Go {};
struct Linked {};
struct Note {
  int number = 0;
};

ExitReason bad() {
  return ExitReason(Term::tuple({Term::atom("bad"), Term::list({Term(1), Term::atom("x")})}));
}

/// Waits for Go and ends with `reason`.
Async<void> end_on_go(ExitReason reason) {
  (void)co_await receive<Go>();
  otp::exit(std::move(reason));
}

/// In this process's mailbox, without a look at what has come since the last one.
size_t messages_waiting() {
  internal::LibraryScope scope(internal::env());
  return internal::self_process().queue_length();
}

/// The EXIT of `from`, which must be the next one.
Async<ExitReason> exit_of(Pid from) {
  ExitMessage message = co_await receive<ExitMessage>();
  require(message.from == from, "an EXIT of another process");
  co_return message.reason;
}

}  // namespace

TEST_CASE("SIG-001 an abnormal end takes linked processes along, with the same reason", "[sig]") {
  everywhere([]() -> Async<void> {
    auto [last, last_down] = spawn_monitor(wait_for_ever);
    auto [middle, middle_down] = spawn_monitor(
        [](Pid linked) -> Async<void> {
          link(linked);
          spawn_link([] { otp::exit(bad()); });
          co_await wait_for_ever();
        },
        last);
    const ExitReason first = co_await down_of(middle_down);
    const ExitReason second = co_await down_of(last_down);
    require(first == bad() && second == bad(), first.to_string() + " " + second.to_string());
  });
}

TEST_CASE("SIG-002 an end with normal does not touch a linked process", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid child = spawn_link([] {});
    co_await gone(child);
    co_await require_silence();
    require(link_count() == 0, "the link is left");
  });
}

TEST_CASE("SIG-003 a process that traps gets one EXIT for any reason", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    const std::vector<ExitReason> reasons = {ExitReason::normal(), ExitReason::shutdown(),
                                             ExitReason::tagged("shutdown", Term::atom("done")),
                                             bad(), ExitReason::atom("killed")};
    for (const ExitReason& reason : reasons) {
      Pid child = spawn_link([](ExitReason why) { otp::exit(std::move(why)); }, reason);
      const ExitReason got = co_await exit_of(child);
      require(got == reason, got.to_string());
    }
    Pid thrower = spawn_link([] { throw std::out_of_range("far"); });
    const ExitReason got = co_await exit_of(thrower);
    require_equal(first_of(got).to_string(), "{std::out_of_range,\"far\"}");
    co_await require_silence();
  });
}

TEST_CASE("SIG-004 trapping counts when the signal arrives, not when the link is made", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid child = spawn_link(end_on_go, bad());
    trap_exit(true);
    (void)send(child, Go{});
    require(co_await exit_of(child) == bad(), "the EXIT");
    const ExitReason reason = co_await end_of([]() -> Async<void> {
      trap_exit(true);
      Pid linked = spawn_link(end_on_go, bad());
      trap_exit(false);
      (void)send(linked, Go{});
      co_await wait_for_ever();
    });
    require(reason == bad(), "trapped though it no longer asked for it");
    trap_exit(false);
  });
}

TEST_CASE("SIG-008 killed travels over links and can be trapped", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid main = self();
    Pid second = spawn_link(
        [](Pid tell) -> Async<void> {
          Pid first = spawn_link(wait_for_ever);
          (void)send(tell, first);
          co_await wait_for_ever();
        },
        main);
    Pid first = co_await receive<Pid>();
    otp::exit(first, ExitReason::kill());
    require_reason(co_await exit_of(second), "killed");
    co_await require_silence();
  });
}

TEST_CASE("SIG-017 spawn_link misses no end, however early", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    for (int i = 0; i < 10; ++i) {
      Pid child = spawn_link([] { otp::exit(bad()); });
      const ExitReason reason = co_await exit_of(child);
      require(reason == bad(), reason.to_string());
    }
    co_await require_silence();
  });
}

TEST_CASE("SIG-019 two processes have at most one link", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid other = spawn(end_on_go, bad());
    link(other);
    link(other);
    require(link_count() == 1, "two links");
    (void)send(other, Go{});
    require(co_await exit_of(other) == bad(), "the EXIT");
    co_await require_silence();
  });
}

TEST_CASE("SIG-020 either end may remove a link", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid maker = spawn(
        [](Pid main) -> Async<void> {
          link(main);
          (void)send(main, Linked{});
          co_await end_on_go(bad());
        },
        self());
    (void)co_await receive<Linked>();
    require(link_count() == 1, "linked");
    unlink(maker);
    (void)send(maker, Go{});
    co_await gone(maker);
    co_await require_silence();
  });
}

TEST_CASE("SIG-021 a process is never linked to itself", "[sig]") {
  everywhere([]() -> Async<void> {
    link(self());
    require(link_count() == 0, "linked to itself");
    unlink(self());
    require(link_count() == 0, "linked to itself after unlink");
    co_await require_silence();
  });
}

TEST_CASE("SIG-022 a link to the dead gives an EXIT with noproc", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid dead = spawn([] {});
    co_await gone(dead);
    link(dead);
    require_reason(co_await exit_of(dead), "noproc");
    const Pid never{0, (uint64_t{3} << 32) | 999'999};
    link(never);
    require_reason(co_await exit_of(never), "noproc");
    co_await require_silence();
  });
}

TEST_CASE("SIG-022 a link to a dead process whose slot has a new tenant gives noproc too",
          "[sig]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        Pid dead = spawn([] {});
        co_await gone(dead);
        const std::vector<Pid> tenants = tenants_after(dead);
        link(dead);
        require_reason(co_await exit_of(dead), "noproc");
        for (Pid each : tenants) co_await end(each);
      },
      kFewRounds);
}

TEST_CASE("SIG-023 an EXIT that is on its way when the link is cut is dropped", "[sig]") {
  // Not in the Simulator: there nobody else runs between a look at the inbox and the unlink.
  on_threads(
      []() -> Async<void> {
        trap_exit(true);
        Pid other = spawn_link(end_on_go, bad());
        for (int i = 0; i < 500; ++i)
          (void)send(other, Note{i});  // dropped before it tells its end
        (void)send(other, Go{});
        Pid next = spawn(wait_for_ever);  // so that `other` is not next in line on this core
        while (is_alive(other)) {}
        unlink(other);
        const size_t before = messages_waiting();  // the EXIT, if it was there in time
        co_await end(next);
        co_await gone(other);
        require(messages_waiting() == before, "an EXIT after unlink");
        (void)co_await receive<ExitMessage>(after(0s));
      },
      100);
}

TEST_CASE("SIG-023 once unlink has returned no EXIT is added to the mailbox", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    for (int i = 0; i < 4; ++i) {
      Pid child = i % 2 == 0 ? spawn_link([] { otp::exit(bad()); }) : spawn_link(wait_for_ever);
      Pid killer = spawn([](Pid victim) { otp::exit(victim, ExitReason::kill()); }, child);
      if (i >= 2) co_await yield();
      unlink(child);
      auto of_child = [child](const ExitMessage& message) { return message.from == child; };
      (void)co_await receive<ExitMessage>(of_child, after(0s));
      co_await gone(child);
      co_await gone(killer);
      auto late = co_await receive<ExitMessage>(after(0s));
      require(!late, "an EXIT after unlink");
    }
    co_await require_silence();
  });
}

TEST_CASE("SIG-024 unlink of what is not linked, or dead, does nothing", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid stranger = spawn(wait_for_ever);
    Pid dead = spawn([] {});
    co_await gone(dead);
    for (Pid each : {stranger, dead, Pid(), Pid{0, (uint64_t{1} << 32) | 888'888}}) unlink(each);
    require(is_alive(stranger) && link_count() == 0, "an effect");
    co_await end(stranger);
    co_await require_silence();
  });
}

TEST_CASE("SIG-035 one EXIT and one DOWN when a process is linked and monitored", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid child = spawn_link(end_on_go, bad());
    Reference reference = monitor(child);
    (void)send(child, Go{});
    Down down = co_await receive<Down>();
    require(down.reference == reference && down.pid == child && down.reason == bad(), "the DOWN");
    require(co_await exit_of(child) == bad(), "the EXIT");
    co_await require_silence();
  });
}

TEST_CASE("SIG-033 all messages of a process come before its DOWN and its EXIT", "[sig]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    constexpr int kNotes = 20;
    auto chatter = [](Pid main) -> Async<void> {
      for (int i = 0; i < kNotes; ++i) co_await send(main, Note{i});
    };
    (void)spawn_monitor(chatter, self());
    int notes = 0;
    for (;;) {
      auto next = co_await receive<Note, Down>();
      if (std::holds_alternative<Down>(next)) break;
      require(std::get<Note>(next).number == notes++, "out of order");
    }
    require(notes == kNotes, "the DOWN came after " + std::to_string(notes));
    (void)spawn_link(chatter, self());
    notes = 0;
    for (;;) {
      auto next = co_await receive<Note, ExitMessage>();
      if (std::holds_alternative<ExitMessage>(next)) break;
      require(std::get<Note>(next).number == notes++, "out of order");
    }
    require(notes == kNotes, "the EXIT came after " + std::to_string(notes));
    co_await require_silence();
  });
}
