// Sending and receiving.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "otp/base/atomic.h"
#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Note {
  int number = 0;
  Pid from{};
};
struct Text {
  std::string text;
  std::vector<int> numbers{};
};
struct Go {};

/// Counts how many of it there are.
struct Tracked {
  Tracked() { ++alive; }
  Tracked(const Tracked&) { ++alive; }
  Tracked(Tracked&&) noexcept { ++alive; }
  ~Tracked() { --alive; }
  static inline Atomic<int> alive{0};
};

Async<void> send_notes(Pid to, int count) {
  for (int i = 0; i < count; ++i) co_await send(to, Note{i, self()});
}

/// Messages in the order received, as text.
Async<std::string> take_notes(int count) {
  std::string order;
  for (int i = 0; i < count; ++i) order += std::to_string((co_await receive<Note>()).number);
  co_return order;
}

constexpr int kPairs = 300;

Async<void> wait_for_go() { (void)co_await receive<Go>(); }

bool is_odd(const Note& note) { return note.number % 2 == 1; }

struct Waiting {
  static Async<std::optional<Note>> odd() { co_return co_await receive<Note>(is_odd); }
  static Async<std::optional<Note>> any() { co_return co_await receive<Note>(); }
};
struct AtOnce {
  static Async<std::optional<Note>> odd() { co_return co_await receive<Note>(is_odd, after(0s)); }
  static Async<std::optional<Note>> any() { co_return co_await receive<Note>(after(0s)); }
};

/// Takes the second of each pair before the first. That is more than a slice's work, and a slice
/// ends at each place between two receives.
template <class Take>
Async<void> receive_in_pairs() {
  const Pid other = spawn(wait_for_go);
  for (int before = 0; before < 4; ++before) {
    for (int i = 0; i < kPairs; ++i) {
      (void)send(self(), Note{2 * i});
      (void)send(self(), Note{2 * i + 1});
    }
    co_await otp::yield();
    for (int i = 0; i < before; ++i) (void)send(other, Note{i});
    for (int i = 0; i < kPairs; ++i) {
      auto second = co_await Take::odd();
      require(second && second->number == 2 * i + 1, "the second");
      auto first = co_await Take::any();
      require(first && first->number == 2 * i, "the first was passed over");
    }
  }
  (void)send(other, Go());
  co_await gone(other);
}

Atomic<bool> enough{false};  // ends those that compute in MBX-021

}  // namespace

TEST_CASE("MBX-001 messages of one sender are received in the order sent", "[mbx]") {
  everywhere([]() -> Async<void> {
    constexpr int kNotes = 100;
    Pid sender = spawn(send_notes, self(), kNotes);
    for (int i = 0; i < kNotes; ++i) {
      require((co_await receive<Note>()).number == i, "out of order at " + std::to_string(i));
    }
    co_await gone(sender);
  });
}

TEST_CASE("MBX-002 each of two senders keeps its order", "[mbx]") {
  everywhere([]() -> Async<void> {
    constexpr int kNotes = 30;
    Pid senders[] = {spawn(send_notes, self(), kNotes), spawn(send_notes, self(), kNotes)};
    int next[] = {0, 0};
    for (int i = 0; i < 2 * kNotes; ++i) {
      Note note = co_await receive<Note>();
      const int whose = note.from == senders[0] ? 0 : 1;
      require(note.number == next[whose]++, "out of order");
    }
    co_await require_silence();
  });
}

TEST_CASE("MBX-003 a selective receive takes the oldest match and keeps the rest", "[mbx]") {
  everywhere([]() -> Async<void> {
    spawn(
        [](Pid main) {
          for (int number : {1, 2, 3, 4, 3}) (void)send(main, Note{number, self()});
        },
        self());
    auto three = [](const Note& note) { return note.number == 3; };
    require((co_await receive<Note>(three)).number == 3, "the match");
    require_equal(co_await take_notes(4), "1243");
    co_await require_silence();
  });
}

TEST_CASE("MBX-003 a receive forgets nothing that an earlier one passed over", "[mbx]") {
  everywhere(receive_in_pairs<Waiting>);
}

TEST_CASE("MBX-004 a message to the dead is dropped without an error", "[mbx]") {
  everywhere([]() -> Async<void> {
    Pid dead = spawn([] {});
    co_await gone(dead);
    auto [next, reference] = spawn_monitor([]() -> Async<void> {
      (void)co_await receive<Go>();
      if (co_await receive<Note>(after(0s))) otp::exit(ExitReason::atom("got_it"));
    });
    const Duration before = now();
    for (Pid nobody : {dead, Pid(), Pid{0, (uint64_t{4} << 32) | 666'666}}) {
      (void)send(nobody, Note{1});
      co_await send(nobody, Note{2});
    }
    require(!simulated() || now() == before, "it took its time");
    (void)send(next, Go{});
    require_reason(co_await down_of(reference), "normal");
    co_await require_silence();
  });
}

TEST_CASE("MBX-005 a message to a name that nobody has is an error, to a name at a node is not",
          "[mbx]") {
  everywhere([]() -> Async<void> {
    std::string reason;
    try {
      (void)send("nobody", Note{1});
    } catch (const Exit& exit) {
      reason = exit.reason().to_string();
    }
    require_equal(reason, "{badarg,nobody}");
    (void)send(NameAt{"nobody"}, Note{2});
    require(register_name("somebody", self()), "registered");
    (void)send("somebody", Note{3});
    (void)send(NameAt{"somebody"}, Note{4});
    require_equal(co_await take_notes(2), "34");
    require(unregister_name("somebody"), "unregistered");
    (void)send(NameAt{"somebody"}, Note{5});
    co_await require_silence();
  });
}

TEST_CASE("MBX-006 a message is what it was when it was sent", "[mbx]") {
  everywhere([]() -> Async<void> {
    Pid echo = spawn(
        [](Pid main) -> Async<void> {
          Text text = co_await receive<Text>();
          (void)co_await receive<Go>();
          (void)send(main, std::move(text));
        },
        self());
    Text mine{"a text that is too long to be kept in place", {1, 2, 3}};
    (void)send(echo, mine);
    mine.text.assign("changed");
    mine.numbers[0] = 99;
    (void)send(echo, Go{});
    Text back = co_await receive<Text>();
    require_equal(back.text, "a text that is too long to be kept in place");
    require(back.numbers == std::vector<int>{1, 2, 3}, "the numbers changed");
    co_await gone(echo);
  });
}

TEST_CASE("MBX-007 a receive with timeout zero sees the whole mailbox and does not wait", "[mbx]") {
  everywhere([]() -> Async<void> {
    for (int i = 0; i < 50; ++i) (void)send(self(), Note{i});
    (void)send(self(), Text{"last"});
    const Duration before = now();
    auto text = co_await receive<Text>(after(0s));
    require(text && text->text == "last", "it was there");
    require(!co_await receive<Text>(after(0s)), "there was one only");
    auto last = [](const Note& note) { return note.number == 49; };
    require(bool(co_await receive<Note>(last, after(0s))), "the last of the notes");
    require(!simulated() || now() == before, "it waited");
    for (int i = 0; i < 49; ++i) (void)co_await receive<Note>();
  });
}

TEST_CASE("MBX-007 a receive with timeout zero finds what an earlier one passed over", "[mbx]") {
  everywhere(receive_in_pairs<AtOnce>);
}

TEST_CASE("MBX-008 a receive and a sleep never end early", "[mbx]") {
  everywhere([]() -> Async<void> {
    for (const Duration time : {Duration(1ns), Duration(90us), Duration(130us)}) {
      Duration before = now();
      require(!co_await receive<Note>(after(time)), "nothing was sent");
      require(now() - before >= time, "the receive ended early");
      require(!simulated() || now() - before <= time, "the receive ended late");
      before = now();
      co_await otp::sleep(time);
      require(now() - before >= time, "the sleep ended early");
    }
  });
  simulate(
      []() -> Async<void> {
        // Other messages that it does not want neither end nor prolong it.
        spawn(
            [](Pid main) -> Async<void> {
              for (int i = 0; i < 5; ++i) {
                co_await otp::sleep(30min);
                (void)send(main, Note{i});
              }
            },
            self());
        const Duration before = now();
        require(!co_await receive<Text>(after(2h)), "no text was sent");
        require(now() - before == 2h, "not two hours");
        for (int i = 0; i < 5; ++i) (void)co_await receive<Note>();
      },
      kFewRounds);
}

TEST_CASE("MBX-009 receives inside a handler that throws lose and reorder nothing", "[mbx]") {
  everywhere([]() -> Async<void> {
    for (int i = 1; i <= 5; ++i) (void)send(self(), Note{i});
    auto handler = []() -> Async<void> {
      auto four = [](const Note& note) { return note.number == 4; };
      (void)co_await receive<Note>(four);
      throw std::runtime_error("in the handler");
    };
    std::string order = std::to_string((co_await receive<Note>()).number);
    bool thrown = false;
    try {
      co_await handler();
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    require(thrown, "the exception arrives outside");
    auto throws = [](const Note& note) -> bool {
      if (note.number == 3) throw std::runtime_error("in the predicate");
      return false;
    };
    try {
      (void)co_await receive<Note>(throws, after(0s));
      require(false, "the predicate did not throw");
    } catch (const std::runtime_error&) {}
    order += co_await take_notes(3);
    require_equal(order, "1235");
  });
}

TEST_CASE("MBX-009 a predicate that throws when a message comes ends the receive, not the node",
          "[mbx]") {
  everywhere([]() -> Async<void> {
    auto throws = [](const Note& note) -> bool {
      if (note.number == 2) throw std::runtime_error("in the predicate");
      return false;
    };
    auto [waiting, reference] = spawn_monitor(
        [](auto predicate) -> Async<void> {
          bool thrown = false;
          try {
            (void)co_await receive<Note>(predicate);
          } catch (const std::runtime_error&) {
            thrown = true;
          }
          require(thrown, "the predicate did not throw");
          require_equal(co_await take_notes(2), "12");
          (void)co_await receive<Note>(predicate, after(1h));
        },
        throws);
    for (int number : {1, 2, 2}) {
      (void)send(waiting, Note{number});
      co_await otp::yield();
    }
    const ExitReason reason = co_await down_of(reference);
    require(reason.to_string().starts_with("{{std::runtime_error,"), reason.to_string());
  });
}

TEST_CASE("MBX-010 what a process leaves in its mailbox goes with it", "[mbx]") {
  everywhere([]() -> Async<void> {
    auto [pid, reference] = spawn_monitor([]() -> Async<void> { (void)co_await receive<Go>(); });
    for (int i = 0; i < 10; ++i) (void)send(pid, Tracked());
    (void)send(pid, Go{});
    for (int i = 0; i < 10; ++i) (void)send(pid, Tracked());
    require_reason(co_await down_of(reference), "normal");
    co_await require_silence();
    // The undertaker of a dead slot runs by itself; others may still be sent to it.
    while (Tracked::alive.load() > 0) co_await yield();
  });
}

TEST_CASE("MBX-021 processes that compute all get on, and so does who waits for messages",
          "[mbx]") {
  // Nine that never wait, of three kinds, go on until the others have got their answers.
  struct Work {
    static Async<void> compute(Pid main, int kind) {
      int steps = 0;
      while (!enough.load()) {
        volatile int sum = 0;
        for (int k = 0; k < 200; ++k) sum = sum + k;
        if (kind == 0) co_await yield();
        if (kind == 1) (void)co_await receive<Go>(after(0s));
        if (kind == 2) {
          co_await send(self(), Go{});
          (void)co_await receive<Go>();
        }
        if (++steps == 3) (void)send(main, Go{});
      }
    }
    static Async<void> answer() {
      for (;;) {
        Note note = co_await receive<Note>();
        (void)send(note.from, note);
      }
    }
  };
  everywhere(
      []() -> Async<void> {
        enough.store(false);
        Pid other = spawn(Work::answer);
        for (int i = 0; i < 9; ++i) spawn(Work::compute, self(), i % 3);
        Duration longest{0};
        for (int i = 0; i < 20; ++i) {
          const Duration before = now();
          (void)send(other, Note{i, self()});
          require((co_await receive<Note>()).number == i, "another answer");
          longest = std::max(longest, now() - before);
        }
        for (int i = 0; i < 9; ++i) (void)co_await receive<Go>();
        enough.store(true);
        // About a second on a machine that does nothing else; this one may.
        require(longest < 3s, "starved for " + std::to_string(longest.count()) + " ns");
        co_await end(other);
      },
      kFewRounds);
}
