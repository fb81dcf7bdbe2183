// The three kinds of timeout: FSM-008..013.
#include <catch2/catch.hpp>
#include <string>

#include "otp/behaviour/gen_statem.h"
#include "tests/conformance/fsm_tape.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct SetAt {
  Duration moment;
};
struct Fired {
  using Reply = Duration;
};
struct Update {
  std::string content;
};
struct CancelAll {};
struct Arm {};
struct Contents {
  using Reply = std::string;
};

// Timeouts that are absolute, updated and cancelled by an action.
class Clock {
 public:
  using Behaviour = GenStatem;
  enum class State { only };
  State init() { return State::only; }

  Transition<Clock> handle_event(State, Cast<SetAt> event) {
    return keep_state().timeout("absolute", at(event->moment), Note{"absolute"});
  }
  void handle_event(State, NamedTimeout<Note> event) {
    fired_ = monotonic_time();
    contents_ += "n:" + event->name + " ";
  }
  void handle_event(State, StateTimeout<Note> event) { contents_ += "s:" + event->name + " "; }
  void handle_event(State, EventTimeout<Note> event) { contents_ += "e:" + event->name + " "; }
  Transition<Clock> handle_event(State, Cast<Arm>) {
    return keep_state()
        .state_timeout(100ms, Note{"old"})
        .timeout("n", 110ms, Note{"old"})
        .timeout(7, 120ms, Note{"seven"});
  }
  Transition<Clock> handle_event(State, Cast<Update> event) {
    return keep_state()
        .update_state_timeout(Note{event->content})
        .update_timeout("n", Note{event->content})
        .update_event_timeout(Note{event->content});
  }
  Transition<Clock> handle_event(State, Cast<CancelAll>) {
    return keep_state().cancel_state_timeout().cancel_timeout("n").cancel_event_timeout();
  }
  Transition<Clock> handle_event(State, Call<Fired> call) {
    return keep_state().reply(call, fired_);
  }
  Transition<Clock> handle_event(State, Call<Contents> call) {
    return keep_state().reply(call, contents_);
  }

 private:
  Duration fired_{};
  std::string contents_;
};

}  // namespace

TEST_CASE("FSM-008 events that keep the state do not stop a state timeout", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .state_timeout = 100ms});
        co_await otp::sleep(60ms);
        cast(machine, Do{.name = "x"});
        co_await otp::sleep(30ms);
        cast(machine, Do{.name = "y"});
        co_await otp::sleep(20ms);  // 110 ms after it was set
        cast(machine, Do{.name = "z"});
        co_await otp::sleep(500ms);
        co_await require_tape(machine,
                              "enter a<a, cast:set@a, cast:x@a, cast:y@a, state_timeout:set@a, "
                              "cast:z@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-009 a state change cancels the state timeout", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .state_timeout = 100ms});
        cast(machine, Do{.name = "go", .to = Place::b});
        co_await otp::sleep(500ms);
        co_await require_tape(machine, "enter a<a, cast:set@a, cast:go@a, enter b<a");
      },
      kFewRounds);
}

TEST_CASE("FSM-009 a state change cancels a state timeout that has expired already", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .state_timeout = 100ms, .busy = 1ms});
        cast(machine, Do{.name = "busy", .busy = 200ms});
        cast(machine, Do{.name = "go", .to = Place::b});  // waits before the expired timeout
        co_await otp::sleep(500ms);
        co_await require_tape(machine, "enter a<a, cast:set@a, cast:busy@a, cast:go@a, enter b<a");
      },
      kFewRounds);
}

TEST_CASE("FSM-009 a state change by an inserted event cancels a state timeout of no time",
          "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .insert = {"go b"}, .state_timeout = 0ms});
        cast(machine, Do{.name = "zero", .state_timeout = 0ms});
        cast(machine, Do{.name = "after"});
        co_await otp::sleep(500ms);
        co_await require_tape(machine,
                              "enter a<a, cast:set@a, cast:go@a, enter b<a, cast:zero@b, "
                              "state_timeout:zero@b, cast:after@b");
      },
      kFewRounds);
}

TEST_CASE("FSM-010 without an event an event timeout fires once", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .event_timeout = 100ms});
        co_await otp::sleep(99ms);
        co_await otp::sleep(500ms);
        co_await require_tape(machine, "enter a<a, cast:set@a, timeout:set@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-010 any event cancels an event timeout", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .event_timeout = 100ms});
        co_await otp::sleep(99ms);
        cast(machine, Do{.name = "x"});
        co_await otp::sleep(100ms);
        cast(machine, Do{.name = "inserted", .insert = {"internal"}, .event_timeout = 100ms});
        co_await otp::sleep(200ms);
        cast(machine, Do{.name = "zero", .event_timeout = 100ms, .state_timeout = 0ms});
        co_await otp::sleep(200ms);
        cast(machine, Do{.name = "later", .postpone_in = "a"});
        cast(machine, Do{.name = "go", .to = Place::b, .event_timeout = 100ms});
        co_await otp::sleep(200ms);
        co_await require_tape(
            machine,
            "enter a<a, cast:set@a, cast:x@a, cast:inserted@a, internal:inserted@a, cast:zero@a, "
            "state_timeout:zero@a, cast:later@a, cast:go@a, enter b<a, cast:later@b");
      },
      kFewRounds);
}

TEST_CASE("FSM-010 an event timeout of no time comes after inserted events only if there are none",
          "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "zero", .event_timeout = 0ms});
        cast(machine, Do{.name = "x"});
        cast(machine, Do{.name = "both", .insert = {"internal"}, .event_timeout = 0ms});
        co_await otp::sleep(200ms);
        co_await require_tape(machine,
                              "enter a<a, cast:zero@a, timeout:zero@a, cast:x@a, cast:both@a, "
                              "internal:both@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-011 named timeouts fire once each, whatever happens meanwhile", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "one", .timeout_1 = 100ms});
        cast(machine, Do{.name = "two", .timeout_2 = 150ms});
        cast(machine, Do{.name = "go", .to = Place::b});
        co_await otp::sleep(120ms);
        cast(machine, Do{.name = "x"});
        co_await otp::sleep(500ms);
        co_await require_tape(machine,
                              "enter a<a, cast:one@a, cast:two@a, cast:go@a, enter b<a, n1:one@b, "
                              "cast:x@b, n2:two@b");
      },
      kFewRounds);
}

TEST_CASE("FSM-012 a timeout that is set again starts anew with the new content", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "old", .state_timeout = 100ms, .timeout_1 = 100ms});
        co_await otp::sleep(50ms);
        cast(machine, Do{.name = "new", .state_timeout = 100ms, .timeout_1 = 110ms});
        co_await otp::sleep(90ms);
        cast(machine, Do{.name = "x"});  // after the old times, before the new ones
        co_await otp::sleep(500ms);
        co_await require_tape(machine,
                              "enter a<a, cast:old@a, cast:new@a, cast:x@a, state_timeout:new@a, "
                              "n1:new@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-012 infinity cancels a timeout", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await recorder();
        cast(machine, Do{.name = "set", .state_timeout = 100ms, .timeout_1 = 100ms});
        cast(machine, Do{.name = "stop", .state_timeout = kStop, .timeout_1 = kStop});
        co_await otp::sleep(500ms);
        co_await require_tape(machine, "enter a<a, cast:set@a, cast:stop@a");
      },
      kFewRounds);
}

TEST_CASE("FSM-012 an action cancels a timeout; another one changes its content", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = (co_await start<Clock>()).or_exit();
        cast(machine, Arm());
        cast(machine, CancelAll());
        co_await otp::sleep(150ms);
        require_equal(co_await call(machine, Contents()), "n:seven ");
        cast(machine, Arm());
        co_await otp::sleep(50ms);
        Update fresh{"new"};
        cast(machine, fresh);  // there is no event timeout: it comes at once
        require_equal(co_await call(machine, Contents()), "n:seven e:new ");
        co_await otp::sleep(71ms);
        require_equal(co_await call(machine, Contents()), "n:seven e:new s:new n:new n:seven ");
        co_await stop(machine);
      },
      kFewRounds);
}

TEST_CASE("FSM-013 an absolute timeout fires at its moment", "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = (co_await start<Clock>()).or_exit();
        co_await otp::sleep(70ms);
        SetAt set{monotonic_time() + 30ms};
        cast(machine, set);
        co_await otp::sleep(31ms);
        Duration fired = co_await call(machine, Fired());
        require(fired >= set.moment && fired < set.moment + 1ms, "at another moment");
        SetAt past{monotonic_time() - 10ms};
        cast(machine, past);
        co_await otp::sleep(1ms);
        require_equal(co_await call(machine, Contents()), "n:absolute n:absolute ");
        co_await stop(machine);
      },
      kFewRounds);
}
