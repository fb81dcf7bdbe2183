#include <catch2/catch.hpp>

#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Ping {
  int number = 0;
};
struct Order {
  Alias to{};
  int number = 0;
};
struct Done {};

// Sends Ping{number} to the alias of each Order, then says Done to its parent.
Async<void> forwarder(Pid parent) {
  for (;;) {
    Order order = co_await receive<Order>();
    Ping ping{order.number};
    (void)otp::send(order.to, ping);
    (void)otp::send(parent, Done());
  }
}

// Has `helper` send through `to`, and waits until it has.
Async<void> send_by(Pid helper, Alias to, int number) {
  Order order{to, number};
  (void)otp::send(helper, order);
  (void)co_await receive<Done>();
}

Async<void> wait_for_done() { (void)co_await receive<Done>(); }

// The numbers of the pings in the mailbox, each as a digit.
Async<std::string> pings() {
  std::string digits;
  while (auto ping = co_await receive<Ping>(after(0ms))) digits += std::to_string(ping->number);
  co_return digits;
}

}  // namespace

TEST_CASE("SIG-038 what is sent to an alias arrives until unalias, queued messages stay", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    const Alias mine = alias();
    co_await send_by(helper, mine, 1);
    co_await send_by(helper, mine, 2);
    require(unalias(mine), "it was not active");
    co_await send_by(helper, mine, 3);
    const std::string seen = co_await pings();
    require_equal(seen, "12");
    co_await end(helper);
    co_await require_silence();
  });
}

TEST_CASE("SIG-038 messages through an alias keep the sender's order with others", "[sig]") {
  everywhere([]() -> Async<void> {
    const Pid me = self();
    const Alias mine = alias();
    auto sender = [](Pid to, Alias by_alias) -> Async<void> {
      for (int number = 0; number < 8; ++number) {
        Ping ping{number};
        number % 2 == 0 ? otp::send(to, ping) : otp::send(by_alias, ping);
      }
      co_return;
    };
    Pid other = spawn(sender, me, mine);
    co_await gone(other);
    const std::string seen = co_await pings();
    require_equal(seen, "01234567");
    require(unalias(mine), "it was not active");
  });
}

TEST_CASE("SIG-038 an alias of a process that has ended drops what comes", "[sig]") {
  everywhere([]() -> Async<void> {
    const Pid me = self();
    auto owner = [](Pid to) -> Async<void> {
      Order mine{alias(), 0};
      (void)otp::send(to, mine);
      co_return;
    };
    Pid other = spawn(owner, me);
    Order theirs = co_await receive<Order>();
    co_await gone(other);
    Ping ping{1};
    (void)otp::send(theirs.to, ping);
    co_await require_silence();
  });
}

TEST_CASE("SIG-039 of two messages to an alias for one reply only the first arrives", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    const Alias once = alias(AliasMode::reply);
    co_await send_by(helper, once, 1);
    co_await send_by(helper, once, 2);
    const std::string seen = co_await pings();
    require_equal(seen, "1");
    require(!unalias(once), "it is active still");
    co_await end(helper);
    co_await require_silence();
  });
}

TEST_CASE("SIG-039 of messages that race to an alias for one reply only one arrives", "[sig]") {
  everywhere([]() -> Async<void> {
    const Alias once = alias(AliasMode::reply);
    auto sender = [](Alias to, int number) -> Async<void> {
      Ping ping{number};
      (void)otp::send(to, ping);
      co_return;
    };
    Pid first = spawn(sender, once, 1);
    Pid second = spawn(sender, once, 2);
    co_await gone(first);
    co_await gone(second);
    const std::string seen = co_await pings();
    require(seen == "1" || seen == "2", "arrived: " + seen);
  });
}

TEST_CASE("SIG-040 an alias that lives as long as a monitor is closed by its DOWN", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    Pid watched = spawn(&wait_for_done);
    const Reference reference = monitor(watched, {.alias = MonitorAlias::demonitor});
    const Alias mine{self(), reference};
    co_await send_by(helper, mine, 1);
    (void)otp::send(watched, Done());
    (void)co_await down_of(reference);
    co_await send_by(helper, mine, 2);
    const std::string seen = co_await pings();
    require_equal(seen, "1");
    require(!unalias(mine), "it is active still");
    co_await end(helper);
    co_await require_silence();
  });
}

TEST_CASE("SIG-040 an alias that lives as long as a monitor is closed by demonitor", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    const Reference reference = monitor(helper, {.alias = MonitorAlias::demonitor});
    const Alias mine{self(), reference};
    require(demonitor(reference), "the monitor was not active");
    co_await send_by(helper, mine, 1);
    co_await end(helper);
    co_await require_silence();
  });
}

TEST_CASE("SIG-040 an explicit_unalias alias outlives its monitor", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    const Reference first = monitor(helper, {.alias = MonitorAlias::explicit_unalias});
    require(demonitor(first), "the monitor was not active");
    co_await send_by(helper, Alias{self(), first}, 1);
    const Reference second = monitor(Pid(), {.alias = MonitorAlias::explicit_unalias});
    (void)co_await down_of(second);
    co_await send_by(helper, Alias{self(), second}, 2);
    const std::string seen = co_await pings();
    require_equal(seen, "12");
    require(unalias(Alias{self(), first}) && unalias(Alias{self(), second}), "they are closed");
    co_await end(helper);
    co_await require_silence();
  });
}

TEST_CASE("SIG-040 a message through a reply_demonitor alias ends alias and monitor", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    const Reference reference = monitor(helper, {.alias = MonitorAlias::reply_demonitor});
    const Alias mine{self(), reference};
    co_await send_by(helper, mine, 1);
    co_await send_by(helper, mine, 2);
    const std::string seen = co_await pings();
    require_equal(seen, "1");
    require(!demonitor(reference), "the monitor is active still");
    co_await end(helper);
    co_await require_silence();  // no DOWN either
  });
}

TEST_CASE("SIG-041 unalias by another process changes nothing, the second by its own is false",
          "[sig]") {
  everywhere([]() -> Async<void> {
    Pid helper = spawn(&forwarder, self());
    const Alias mine = alias();
    auto stranger = [](Alias theirs) -> Async<void> {
      require(!unalias(theirs), "a stranger closed it");
      co_return;
    };
    auto [other, reference] = spawn_monitor(stranger, mine);
    const ExitReason reason = co_await down_of(reference);
    require_reason(reason, "normal");
    co_await send_by(helper, mine, 1);
    const std::string seen = co_await pings();
    require_equal(seen, "1");
    require(unalias(mine), "it was closed");
    require(!unalias(mine), "it was closed twice");
    co_await end(helper);
    (void)other;
  });
}

TEST_CASE("SIG-042 a monitor's tag comes back in its DOWN, for noproc too", "[sig]") {
  everywhere([]() -> Async<void> {
    Pid watched = spawn(&wait_for_done);
    const Term tag = Term::tuple({Term::literal("job"), Term(7)});
    const Reference first = monitor(watched, {.tag = tag});
    const Reference plain = monitor(watched);
    (void)otp::send(watched, Done());
    auto of_first = [first](const Down& down) { return down.reference == first; };
    Down down = co_await receive<Down>(of_first);
    require(down.tag == tag && down.pid == watched, "the tag or the pid is wrong");
    require_reason(down.reason, "normal");
    auto of_plain = [plain](const Down& each) { return each.reference == plain; };
    Down untagged = co_await receive<Down>(of_plain);
    require(untagged.tag == Term(), "a tag without one given");
    const Reference nobody = monitor(watched, {.tag = tag});
    auto of_nobody = [nobody](const Down& each) { return each.reference == nobody; };
    Down gone_already = co_await receive<Down>(of_nobody);
    require(gone_already.tag == tag, "no tag with noproc");
    require_reason(gone_already.reason, "noproc");
  });
}
