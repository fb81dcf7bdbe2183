// Events, states, enter calls, postponed and inserted events: FSM-001..007, 014, 015, 016.
#include <catch2/catch.hpp>
#include <string>

#include "otp/behaviour/gen_statem.h"
#include "tests/conformance/fsm_tape.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Push {
  using Reply = std::string;
};
struct Count {
  using Reply = int;
};
struct Add {
  int by = 1;
};

// The machine of the contract: on and off, and a number.
class Switch {
 public:
  using Behaviour = GenStatem;
  enum class State { off, on };
  using Info = Protocol<Add>;

  State init() { return State::off; }
  Transition<Switch> handle_event(In<State::off>, Call<Push> call) {
    ++count_;
    return next_state(State::on).reply(call, "on");
  }
  Transition<Switch> handle_event(In<State::on>, Call<Push> call) {
    return next_state(State::off).reply(call, "off");
  }
  Transition<Switch> handle_event(State, Call<Count> call) {
    return keep_state().reply(call, count_);
  }
  void handle_event(State, Cast<Add> event) { count_ += event->by; }
  void handle_event(State, otp::Info<Add> event) { count_ += 100 * event->by; }

 private:
  int count_ = 0;
};

// States with data of their own.
class Lock {
 public:
  using Behaviour = GenStatem;
  struct Closed {
    int tries = 0;
    bool operator==(const Closed&) const = default;
  };
  struct Open {
    std::string by;
    bool operator==(const Open&) const = default;
  };
  using State = std::variant<Closed, Open>;

  State init() { return Closed{}; }
  Transition<Lock> handle_event(const Closed& closed, Call<Query> call) {
    if (call->name != "ann") {
      return next_state(Closed{closed.tries + 1}).reply(call, std::to_string(closed.tries));
    }
    return next_state(Open{call->name}).reply(call, "open");
  }
  Transition<Lock> handle_event(const Open& open, Call<Query> call) {
    return keep_state().reply(call, "open by " + open.by);
  }
};

}  // namespace

TEST_CASE("FSM-001 events have a type, and a handler returns state, data and reply", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = (co_await start<Switch>()).or_exit();
    require_equal(co_await call(machine, Push()), "on");
    require_equal(co_await call(machine, Push()), "off");
    require_equal(co_await call(machine, Push()), "on");
    cast(machine, Add{.by = 10});
    send(machine, Add{.by = 1});
    send(machine.pid(), Add{.by = 2});
    require(co_await call(machine, Count()) == 312, "cast and info went to the wrong handler");
    co_await stop(machine);
  });
}

TEST_CASE("FSM-001 a state may be a variant with data of its own", "[fsm]") {
  everywhere(
      []() -> Async<void> {
        auto lock = (co_await start<Lock>()).or_exit();
        Query bob{"bob"};
        Query ann{"ann"};
        require_equal(co_await call(lock, bob), "0");
        require_equal(co_await call(lock, bob), "1");
        require_equal(co_await call(lock, ann), "open");
        require_equal(co_await call(lock, bob), "open by ann");
        co_await stop(lock);
      },
      kFewRounds);
}

TEST_CASE("FSM-002 going to the same state is no state change", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .state_timeout = 100ms});
        cast(machine, Do{.name = "later", .postpone_in = "a"});
        co_await otp::sleep(50ms);
        cast(machine, Do{.name = "same", .to = Place::a});
        co_await otp::sleep(60ms);
        co_await require_tape(machine,
                              "enter a<a, cast:set@a, cast:later@a, cast:same@a, "
                              "state_timeout:set@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-003 the first enter call comes before any event, with the state as the old one",
          "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder(Do{.name = "init"});
    co_await require_tape(machine, "enter a<a, internal:first@a");
  });
}

TEST_CASE("FSM-004 one enter call on a change, before any event of the new state", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder();
    cast(machine, Do{.name = "later", .postpone_in = "a"});
    cast(machine, Do{.name = "go", .to = Place::b, .insert = {"internal"}});
    co_await require_tape(machine,
                          "enter a<a, cast:later@a, cast:go@a, enter b<a, internal:go@b, "
                          "cast:later@b");
  });
}

TEST_CASE("FSM-005 repeat_state makes the enter call again and is no state change", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .state_timeout = 100ms});
        cast(machine, Do{.name = "later", .postpone_in = "a"});
        co_await otp::sleep(50ms);
        cast(machine, Do{.name = "again", .repeat = true});
        co_await otp::sleep(60ms);
        co_await require_tape(machine,
                              "enter a<a, cast:set@a, cast:later@a, cast:again@a, enter a<a, "
                              "state_timeout:set@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-006 a postponed event is tried again on a change, before what came later", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder();
    cast(machine, Do{.name = "later", .postpone_in = "a"});
    cast(machine, Do{.name = "x"});
    cast(machine, Do{.name = "go", .to = Place::b});
    cast(machine, Do{.name = "y"});
    co_await require_tape(machine,
                          "enter a<a, cast:later@a, cast:x@a, cast:go@a, enter b<a, cast:later@b, "
                          "cast:y@b");
  });
}

TEST_CASE("FSM-007 postponed events come back in the order in which they arrived", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder();
    cast(machine, Do{.name = "1", .postpone_in = "ab"});
    send(machine, Do{.name = "2", .postpone_in = "a"});
    cast(machine, Do{.name = "3", .postpone_in = "ab"});
    cast(machine, Do{.name = "go", .to = Place::b});
    cast(machine, Do{.name = "on", .to = Place::c});
    co_await require_tape(machine,
                          "enter a<a, cast:1@a, info:2@a, cast:3@a, cast:go@a, enter b<a, "
                          "cast:1@b, info:2@b, cast:3@b, cast:on@b, enter c<b, cast:1@c, cast:3@c");
  });
}

TEST_CASE("FSM-007 a postponed call is answered after the change", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder();
    Pid other = spawn([machine]() -> Async<void> {
      Ask ask{{.name = "asked", .postpone_in = "a"}};
      require_equal(co_await call(machine, ask), "asked");
    });
    Reference down = monitor(other);
    cast(machine, Do{.name = "go", .to = Place::b});
    ExitReason end = co_await down_of(down);
    require_reason(end, "normal");
    co_await stop(machine);
  });
}

TEST_CASE("FSM-014 the actions of init act on entering the first state", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder(Do{.name = "init", .state_timeout = 30ms});
        cast(machine, Do{.name = "outside"});
        co_await otp::sleep(40ms);
        co_await require_tape(machine,
                              "enter a<a, internal:first@a, cast:outside@a, "
                              "state_timeout:from init@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-015 an inserted event has exactly the type and content it was given", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder();
    Do all{.name = "x"};
    all.insert = {"call", "cast", "info", "internal", "timeout", "state_timeout", "n1"};
    cast(machine, all);
    cast(machine, Do{.name = "after"});
    co_await require_tape(machine,
                          "enter a<a, cast:x@a, call:x@a, cast:x@a, info:x@a, internal:x@a, "
                          "timeout:x@a, state_timeout:x@a, n1:x@a, cast:after@a");
  });
}

TEST_CASE("FSM-016 earlier callers are answered from another state, several in one transition",
          "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await recorder();
    auto asker = [machine]() -> Async<void> {
      Ask ask{{.name = "q"}, true};
      require_equal(co_await call(machine, ask), "answered in b");
    };
    auto one = spawn_monitor(asker);
    auto two = spawn_monitor(asker);
    // The machine has both when its tape says so.
    std::vector<std::string> tape;
    while (tape.size() < 3) tape = co_await call(machine, Tape());
    cast(machine, Do{.name = "go", .to = Place::b});
    cast(machine, AnswerAll());
    ExitReason first = co_await down_of(one.second);
    ExitReason second = co_await down_of(two.second);
    require_reason(first, "normal");
    require_reason(second, "normal");
    co_await stop(machine);
  });
}
