#include <catch2/catch.hpp>
#include <string>

#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"
#include "tests/support/holdings.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Ready {
  Pid pid;
};
struct Quit {};

/// Tells its parent that it is there, waits for Quit, and ends with `bad`.
Async<void> child(Pid parent) {
  (void)send(parent, Ready{self()});
  co_await receive<Quit>();
  otp::exit(ExitReason::atom("bad"));
}
/// Unlinks its parent first.
Async<void> loner(Pid parent, bool relink) {
  unlink(parent);
  if (relink) link(parent);
  co_await child(parent);
}
/// Unlinks its parent and is there for somebody else.
Async<void> runaway(Pid parent, Pid main) {
  unlink(parent);
  co_await child(main);
}
/// However long it takes.
Async<void> exit_of(Pid pid) {
  auto wanted = [pid](const ExitMessage& message) { return message.from == pid; };
  ExitMessage message = co_await receive<ExitMessage>(wanted);
  require(message.reason.is("bad"), message.reason.to_string());
}
Async<void> require_no_exit_of(Pid pid, std::string why) {
  auto wanted = [pid](const ExitMessage& message) { return message.from == pid; };
  auto message = co_await receive<ExitMessage>(wanted, after(20ms));
  require(!message, why);
}

}  // namespace

TEST_CASE("the exit of a child that fails at once is never missed", "[runtime][links]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        for (int i = 0; i < 20; ++i) {
          Pid pid = spawn_link([] { otp::exit(ExitReason::atom("bad")); });
          ExitMessage message = co_await receive<ExitMessage>();
          require(message.from == pid && message.reason.is("bad"), message.reason.to_string());
        }
      },
      kFewRounds);
}

TEST_CASE("there is one link a pair and none to oneself", "[runtime][links]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        Holdings before = holdings();
        link(self());
        unlink(self());
        Pid pid = spawn_link(child, self());
        co_await receive<Ready>();
        link(pid);
        link(pid);
        (void)send(pid, Quit{});
        co_await exit_of(pid);
        co_await require_no_exit_of(pid, "a second one");
        co_await require_nothing_left(before);
      },
      kFewRounds);
}

TEST_CASE("either end may remove the link that a child was born with", "[runtime][links]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        Holdings before = holdings();
        Pid by_child = spawn_link(loner, self(), false);
        Pid by_parent = spawn_link(child, self());
        Pid again = spawn_link(loner, self(), true);
        for (int i = 0; i < 3; ++i) co_await receive<Ready>();
        unlink(by_parent);
        for (Pid pid : {by_child, by_parent, again}) (void)send(pid, Quit{});
        co_await require_no_exit_of(by_child, "the child removed it");
        co_await require_no_exit_of(by_parent, "the parent removed it");
        co_await exit_of(again);  // made again by the child
        co_await require_nothing_left(before);
      },
      kFewRounds);
}

TEST_CASE("a parent links again to a child that it has unlinked", "[runtime][links]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        Holdings before = holdings();
        Pid pid = spawn_link(child, self());
        co_await receive<Ready>();
        unlink(pid);
        link(pid);
        (void)send(pid, Quit{});
        co_await exit_of(pid);
        co_await require_nothing_left(before);
      },
      kFewRounds);
}

TEST_CASE("the end of a parent reaches the child it was born with", "[runtime][links]") {
  everywhere(
      []() -> Async<void> {
        for (const char* atom : {"normal", "bad"}) {
          auto parent = [](Pid main, const char* reason) -> Async<void> {
            spawn_link(child, main);
            spawn_link(runaway, self(), main);
            co_await receive<Quit>();
            otp::exit(ExitReason::atom(reason));
          };
          Pid starter = spawn(parent, self(), atom);
          Pid first = (co_await receive<Ready>()).pid;
          Pid second = (co_await receive<Ready>()).pid;
          (void)send(starter, Quit{});
          Reference ended = monitor(starter);
          co_await down_of(ended);
          const int left = std::string(atom) == "normal" ? 2 : 1;
          while (is_alive(first) + is_alive(second) > left) co_await otp::sleep(1ms);
          co_await otp::sleep(5ms);
          require(is_alive(first) + is_alive(second) == left, atom);
          for (Pid pid : {first, second}) otp::exit(pid, ExitReason::kill());
        }
      },
      kFewRounds);
}

TEST_CASE("linking to the dead gives noproc, unlinking nothing", "[runtime][links]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        Holdings before = holdings();
        auto dead = spawn_monitor([] {});
        co_await down_of(dead.second);
        unlink(dead.first);
        link(dead.first);
        ExitMessage message = co_await receive<ExitMessage>();
        require(message.from == dead.first && message.reason.is("noproc"), "noproc");
        co_await require_nothing_left(before);
      },
      kFewRounds);
}
