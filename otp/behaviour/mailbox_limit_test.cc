#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <string>

#include "otp/behaviour/gen_server.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

struct Hold {  // keeps the server busy: messages pile up
  using Reply = void;
  Duration time = 1s;
};
struct Add {
  int by = 1;
};
struct Sum {
  using Reply = int;
};

class Slow {
 public:
  explicit Slow() { trap_exit(true); }
  Async<void> handle_call(Hold hold) { co_await otp::sleep(hold.time); }
  int handle_call(Sum) { return sum_; }
  void handle_cast(Add add) { sum_ += add.by; }
  void handle_info(ExitMessage) { sum_ += 1000; }

 private:
  int sum_ = 0;
};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}
Async<Server<Slow>> start_slow(OnFull on_full, uint64_t letters_max = 10) {
  trap_exit(true);
  StartOptions options{.mailbox = {letters_max, on_full}};
  co_return (co_await otp::start_link<Slow>({}, std::move(options))).or_exit();
}
// Makes the server busy and returns when it is.
Async<void> make_busy(Server<Slow> slow) {
  spawn([](Server<Slow> to) -> Async<void> { co_await otp::call(to, Hold{}); }, slow);
  co_await otp::sleep(10ms);
}
void simulate(Async<void> (*test)()) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed);
    simulator.run(test);
  }
}

}  // namespace

TEST_CASE("a full mailbox that rejects answers calls and drops casts", "[mailbox]") {
  simulate([]() -> Async<void> {
    auto slow = co_await start_slow(OnFull::reject);
    co_await make_busy(slow);
    for (int i = 0; i < 10; ++i) (void)otp::cast(slow, Add{});
    for (int i = 0; i < 90; ++i) (void)otp::cast(slow, Add{});
    auto refused = co_await otp::try_call(slow, Sum{});
    require(refused.error() == ExitReason::tagged("mailbox_full", Term(slow.pid())),
            refused.error().to_string());
    co_await otp::sleep(2s);
    require(co_await otp::call(slow, Sum{}) == 10, "ten were taken");
  });
}

TEST_CASE("a full mailbox that drops the newest lets callers wait", "[mailbox]") {
  simulate([]() -> Async<void> {
    auto slow = co_await start_slow(OnFull::drop_newest);
    co_await make_busy(slow);
    for (int i = 0; i < 50; ++i) (void)otp::cast(slow, Add{});
    CallOptions patience{.timeout = 100ms};
    auto dropped = co_await otp::try_call(slow, Sum{}, patience);
    require(dropped.error().is("timeout"), dropped.error().to_string());
    co_await otp::sleep(2s);
    require(co_await otp::call(slow, Sum{}) == 10, "ten were taken");
  });
}

TEST_CASE("a process that exits when its mailbox is full says so", "[mailbox]") {
  simulate([]() -> Async<void> {
    auto slow = co_await start_slow(OnFull::exit);
    Reference reference = monitor(slow.pid());
    co_await make_busy(slow);
    for (int i = 0; i < 11; ++i) (void)otp::cast(slow, Add{});
    Down down = co_await receive<Down>();
    require(down.reference == reference, "its DOWN");
    require(down.reason == ExitReason::tagged("mailbox_full", Term(slow.pid())),
            down.reason.to_string());
  });
}

TEST_CASE("signals, replies and system messages pass a full mailbox", "[mailbox]") {
  simulate([]() -> Async<void> {
    auto slow = co_await start_slow(OnFull::reject);
    co_await make_busy(slow);
    for (int i = 0; i < 100; ++i) (void)otp::cast(slow, Add{});
    Pid linked = spawn([](Pid to) { link(to); }, slow.pid());
    (void)linked;
    co_await otp::sleep(2s);
    require(co_await otp::call(slow, Sum{}) == 1010, "its EXIT came through");
    co_await make_busy(slow);
    for (int i = 0; i < 100; ++i) (void)otp::cast(slow, Add{});
    co_await otp::stop(slow);
    require(!is_alive(slow.pid()), "stop is a system message");
  });
}

TEST_CASE("try_cast says that a mailbox is full, and whose", "[mailbox]") {
  simulate([]() -> Async<void> {
    auto slow = co_await start_slow(OnFull::reject);
    for (int round = 0; round < 3; ++round) {
      co_await make_busy(slow);
      int taken = 0;
      Result<void> last;
      for (int i = 0; i < 100 && last.ok(); ++i) {
        last = otp::try_cast(slow, Add{});
        taken += last.ok();
      }
      require(taken == 10, "taken " + std::to_string(taken));
      require(last.error() == ExitReason::tagged("mailbox_full", Term(slow.pid())), "whose");
      co_await otp::sleep(2s);
      require(otp::try_cast(slow, Add{}).ok(), "room again");
      require(co_await otp::call(slow, Sum{}) == 11 * (round + 1), "none was dropped");
    }
    co_await otp::stop(slow);
    require(otp::try_cast(slow, Add{}).error().is("noproc"), "gone");
  });
}

TEST_CASE("a limit holds among senders on real cores", "[mailbox]") {
  SystemOptions options;
  options.cores = 2;
  System system(options);
  system.run([]() -> Async<void> {
    auto slow = co_await start_slow(OnFull::reject, 100);
    std::vector<Reference> senders;
    for (int i = 0; i < 4; ++i) {
      auto send_many = [](Server<Slow> to) -> Async<void> {
        for (int n = 0; n < 5000; ++n) {
          while (!otp::try_cast(to, Add{}).ok()) co_await otp::yield();
        }
      };
      senders.push_back(spawn_monitor(send_many, slow).second);
    }
    for (size_t i = 0; i < senders.size(); ++i) {
      require((co_await receive<Down>()).reason.is_normal(), "a sender ends: room is seen again");
    }
    CallOptions patience{.timeout = 60s};
    int sum = 0;
    for (;;) {
      auto answer = co_await otp::try_call(slow, Sum{}, patience);
      if (!answer.ok()) continue;  // full just now
      sum = answer.value();
      break;
    }
    require(sum > 10'000 && sum <= 20'000, "most arrived: " + std::to_string(sum));
  });
}

TEST_CASE("drop_expired: a call whose caller has given up is not handled", "[mailbox]") {
  simulate([]() -> Async<void> {
    trap_exit(true);
    StartOptions options{.drop_expired = true};
    auto slow = (co_await otp::start_link<Slow>({}, std::move(options))).or_exit();
    co_await make_busy(slow);
    CallOptions impatient{.timeout = 10ms};
    auto late = co_await otp::try_call(slow, Hold{.time = 3600s}, impatient);
    require(late.error().is("timeout"), "timeout");
    CallOptions patience{.timeout = 10s};
    require(co_await otp::call(slow, Sum{}, patience) == 0, "the hour was not spent");
  });
}
