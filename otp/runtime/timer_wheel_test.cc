#include "otp/runtime/timer_wheel.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <vector>

using otp::internal::LetterKind;
using otp::internal::make_signal;
using otp::internal::TimerId;
using otp::internal::TimerWheel;

namespace {
std::vector<uint64_t> fired_at(TimerWheel& wheel, int64_t now) {
  std::vector<uint64_t> fired;
  wheel.expire(now, [&](uint64_t target, otp::internal::Letter* letter) {
    fired.push_back(target);
    free_letter(letter);
  });
  return fired;
}
}  // namespace

TEST_CASE("a timer fires at its deadline and not before", "[timer_wheel]") {
  TimerWheel wheel(0);
  wheel.arm(1'000'000, 7, make_signal(LetterKind::timer));
  CHECK(fired_at(wheel, 999'999).empty());
  CHECK(fired_at(wheel, 1'000'000) == std::vector<uint64_t>{7});
  CHECK(wheel.armed() == 0);
}

TEST_CASE("timers fire in the order of their deadlines", "[timer_wheel]") {
  TimerWheel wheel(123);
  for (uint64_t ms : {300, 0, 200, 100}) {
    wheel.arm(static_cast<int64_t>(ms) * 1'000'000, ms + 1, make_signal(LetterKind::timer));
  }
  CHECK(fired_at(wheel, 400'000'000) == std::vector<uint64_t>{1, 101, 201, 301});
}

TEST_CASE("R-008 very long timers keep their deadline beside short ones", "[timer_wheel]") {
  const int64_t day = 86'400'000'000'000;
  TimerWheel wheel(5 * day);
  wheel.arm(305 * day, 300, make_signal(LetterKind::timer));
  wheel.arm(INT64_MAX - 1, 9, make_signal(LetterKind::timer));
  wheel.arm(5 * day + 10'000'000, 10, make_signal(LetterKind::timer));
  CHECK(fired_at(wheel, 304 * day) == std::vector<uint64_t>{10});
  CHECK(fired_at(wheel, 306 * day) == std::vector<uint64_t>{300});
  CHECK(wheel.next_event() < INT64_MAX);
  CHECK(fired_at(wheel, INT64_MAX - 1) == std::vector<uint64_t>{9});
}

TEST_CASE("a cancelled timer is gone and its handle is stale", "[timer_wheel]") {
  TimerWheel wheel(0);
  TimerId first = wheel.arm(500, 1, make_signal(LetterKind::timer));
  CHECK(wheel.deadline(first) == 500);
  CHECK(wheel.cancel(first) == 500);
  CHECK(wheel.cancel(first) == TimerWheel::kNever);
  TimerId second = wheel.arm(700, 2, make_signal(LetterKind::timer));
  CHECK(wheel.cancel(first) == TimerWheel::kNever);
  CHECK(wheel.deadline(second) == 700);
}

TEST_CASE("random arms and cancels agree with a sorted map", "[timer_wheel]") {
  std::mt19937_64 random(42);
  for (int round = 0; round < 50; ++round) {
    int64_t now = static_cast<int64_t>(random() % 1'000'000'000'000);
    TimerWheel wheel(now);
    std::map<uint64_t, std::pair<int64_t, TimerId>> armed;
    uint64_t next = 1;
    for (int step = 0; step < 400; ++step) {
      int shift = static_cast<int>(random() % 45);
      if (random() % 3) {
        int64_t at = now + static_cast<int64_t>(random() % (1ull << shift | 1));
        armed[next] = {at, wheel.arm(at, next, make_signal(LetterKind::timer))};
        ++next;
      } else if (!armed.empty() && random() % 2) {
        auto it = std::next(armed.begin(), static_cast<long>(random() % armed.size()));
        REQUIRE(wheel.cancel(it->second.second) == it->second.first);
        armed.erase(it);
      }
      now += static_cast<int64_t>(random() % (1ull << (random() % 40)));
      int64_t event = wheel.next_event();
      for (uint64_t target : fired_at(wheel, now)) {
        REQUIRE(armed.count(target) == 1);
        REQUIRE(armed[target].first <= now);
        armed.erase(target);
      }
      for (auto& [target, timer] : armed) {
        REQUIRE(timer.first > now);
        REQUIRE(event <= timer.first);
      }
    }
  }
}
