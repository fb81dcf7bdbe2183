// Timers that send messages.
#include <catch2/catch.hpp>
#include <vector>

#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Tick {
  int number = 0;
};
struct Go {};

}  // namespace

TEST_CASE("MBX-011 a timer sends its message once and never early", "[mbx]") {
  everywhere([]() -> Async<void> {
    for (const Duration time : {Duration(0), Duration(40us), Duration(150us)}) {
      const Duration before = now();
      send_after(time, self(), Tick{7});
      require((co_await receive<Tick>()).number == 7, "the message");
      require(now() - before >= time, "early");
      require(!simulated() || now() - before == time, "late");
    }
    Pid other = spawn(
        [](Pid main) -> Async<void> {
          const Duration before = now();
          (void)co_await receive<Tick>();
          require(now() - before >= 0ns, "time goes on");
          (void)send(main, Go{});
        },
        self());
    send_after(20us, other, Tick{});
    (void)co_await receive<Go>();
    co_await gone(other);
    co_await require_silence();
  });
}

TEST_CASE("MBX-013 a timer that is cancelled says what was left and never fires", "[mbx]") {
  everywhere([]() -> Async<void> {
    TimerRef timer = send_after(1000ms, self(), Tick{});
    auto left = cancel_timer(timer);
    require(left && *left > 0ns && *left <= 1000ms, "what was left");
    require(!cancel_timer(timer), "cancelled twice");
    require(!read_timer(timer), "it can still be read");
    co_await require_silence();
  });
  simulate(
      []() -> Async<void> {
        TimerRef timer = send_after(1000ms, self(), Tick{});
        co_await otp::sleep(400ms);
        require(cancel_timer(timer) == Duration(600ms), "600 ms were left");
        require(!co_await receive<Tick>(after(5s)), "it fired");
      },
      kFewRounds);
}

TEST_CASE("MBX-014 a timer that has fired cannot be cancelled and its message stays", "[mbx]") {
  everywhere([]() -> Async<void> {
    TimerRef timer = send_after(1us, self(), Tick{3});
    while (read_timer(timer)) co_await otp::sleep(1us);
    require(!cancel_timer(timer), "it had fired");
    auto tick = co_await receive<Tick>();
    require(tick.number == 3, "the message");
    co_await require_silence();
    // In a race exactly one of the two happens.
    TimerRef racing = send_after(0us, self(), Tick{});
    if (cancel_timer(racing)) {
      co_await require_silence();
    } else {
      (void)co_await receive<Tick>();
    }
  });
}

TEST_CASE("MBX-015 a timer can be read without touching it", "[mbx]") {
  simulate(
      []() -> Async<void> {
        TimerRef timer = send_after(300ms, self(), Tick{});
        require(read_timer(timer) == Duration(300ms), "all of it");
        co_await otp::sleep(100ms);
        require(read_timer(timer) == Duration(200ms), "two thirds");
        require(read_timer(timer) == Duration(200ms), "reading took something");
        const Duration before = now();
        (void)co_await receive<Tick>();
        require(now() - before == 200ms, "it did not fire in time");
        require(!read_timer(timer), "it has fired");
        TimerRef cancelled = send_after(1s, self(), Tick{});
        (void)cancel_timer(cancelled);
        require(!read_timer(cancelled), "it was cancelled");
        require(!read_timer(TimerRef()), "no timer at all");
      },
      kFewRounds);
  on_threads([]() -> Async<void> {
    TimerRef timer = send_after(10s, self(), Tick{});
    auto left = read_timer(timer);
    require(left && *left > 0s && *left <= 10s, "what is left");
    (void)cancel_timer(timer);
    require(!read_timer(timer), "it was cancelled");
    co_return;
  });
}

TEST_CASE("MBX-017 timers set in any order fire in the order of their times", "[mbx]") {
  simulate([]() -> Async<void> {
    for (int number : {2, 0, 3, 1}) send_after(number * 100ms, self(), Tick{number});
    for (int number : {0, 1, 2, 3}) {
      require((co_await receive<Tick>()).number == number, "out of order");
    }
  });
  on_threads([]() -> Async<void> {
    for (bool quick = false; !quick;) {
      const Duration before = now();
      for (int number : {2, 0, 3, 1}) send_after(number * 100us, self(), Tick{number});
      // A thread that was held up meanwhile has given them times in another order.
      quick = now() - before < 50us;
      for (int number : {0, 1, 2, 3}) {
        const int got = (co_await receive<Tick>()).number;
        require(!quick || got == number, "out of order");
      }
    }
  });
}

TEST_CASE("MBX-020 twenty thousand timers of one instant all fire in time", "[mbx]") {
  everywhere(
      []() -> Async<void> {
        constexpr int kTimers = 20'000;
        const Duration due = now() + 20ms;
        for (int i = 0; i < kTimers; ++i) send_after(due - now(), self(), Tick{i});
        std::vector<bool> seen(kTimers);
        for (int i = 0; i < kTimers; ++i) seen.at((co_await receive<Tick>()).number) = true;
        for (bool each : seen) {
          if (!each) require(false, "one was lost and one came twice");
        }
        require(now() >= due, "early");
        require(!simulated() || now() - due <= 200ms, "late");
        co_await require_silence();
      },
      1);
}

TEST_CASE("MBX-012 the message of start_timer says which timer sent it", "[mbx]") {
  everywhere([]() -> Async<void> {
    TimerRef first = start_timer(30us, self(), Tick{1});
    TimerRef second = start_timer(20us, self(), Tick{2});
    require(first.reference != second.reference, "equal references");
    for (const TimerRef& timer : {first, second}) {
      auto of_timer = [&timer](const TimerExpired<Tick>& expired) {
        return expired.timer == timer.reference;
      };
      auto expired = co_await receive<TimerExpired<Tick>>(of_timer);
      require(expired.message.number == (timer.reference == first.reference ? 1 : 2), "another");
    }
    TimerRef cancelled = start_timer(10s, self(), Tick{3});
    require(cancel_timer(cancelled).has_value(), "cancelled");
    co_await require_silence();
  });
}

TEST_CASE("MBX-016 a timer goes with the process that it is addressed to", "[mbx]") {
  everywhere([]() -> Async<void> {
    Pid pid = spawn(wait_for_ever);
    Pid other = spawn(wait_for_ever);
    std::vector<TimerRef> timers;
    for (int i = 0; i < 3; ++i) timers.push_back(send_after(1h, pid, Tick{i}));
    TimerRef kept = send_after(1h, other, Tick{});
    require(cancel_timer(timers[1]).has_value(), "one is cancelled before");
    require(read_timer(timers[0]) && read_timer(timers[2]), "active while it lives");
    co_await end(pid);
    for (const TimerRef& timer : timers) require(!read_timer(timer), "a timer for the dead");
    require(!read_timer(send_after(1h, pid, Tick{})), "armed for the dead");
    require(read_timer(kept).has_value(), "a timer of another process went too");
    // While it ends.
    Pid ending = spawn([] {});
    TimerRef racing = send_after(1h, ending, Tick{});
    co_await gone(ending);
    require(!read_timer(racing), "a timer for the dead, armed while it died");
    co_await end(other);
  });
}
