// Stops, crashes, failed calls, starts: FSM-017, 018, 019, 021.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "otp/behaviour/gen_statem.h"
#include "otp/supervision/supervisor.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Said {
  std::string text;
};
struct GoOn {};
struct End {
  using Reply = std::string;
  bool reply = true;
};
struct Hold {
  using Reply = std::string;
};
struct Throw {};
struct Where {
  using Reply = std::string;
};
struct Slow {
  using Reply = int;
};
struct Leave {};
struct Nowhere {};
struct AnswerNobody {};
struct PostponeAnother {};
struct OnlyOpen {};

class Gate {
 public:
  using Behaviour = GenStatem;
  enum class State { shut, open };
  struct Args {
    Pid witness{};
    std::string fail{};
  };
  using Next = Transition<Gate>;

  explicit Gate(Args args) : args_(std::move(args)) {
    if (args_.fail == "throw") throw std::runtime_error("no luck");
  }
  Async<Initial<Gate>> init() {
    if (args_.fail == "stop") co_return otp::stop(ExitReason::atom("stopped"));
    if (args_.fail == "error") co_return otp::error(ExitReason::atom("wrong"));
    if (args_.fail == "ignore") co_return otp::ignore();
    if (args_.fail == "slow") co_await otp::sleep(200ms);
    co_return otp::ok(State::shut);
  }

  Next handle_event(State, Call<End> call) {
    if (!call->reply) return otp::stop(ExitReason::atom("ended"));
    return stop_and_reply(ExitReason::atom("ended")).reply(call, "bye").reply(held_, "bye too");
  }
  void handle_event(State, Call<Hold> call) {
    held_ = call.from;
    say("held");
  }
  void handle_event(State, Cast<Throw>) { throw std::runtime_error("in event"); }
  Next handle_event(State state, Call<Where> call) {
    return keep_state().reply(call, std::string(enum_name(state)));
  }
  Async<Next> handle_event(State, Call<Slow> call) {
    co_await otp::sleep(100ms);
    co_return keep_state().reply(call, 1);
  }
  Next handle_event(State, Cast<Leave>) { return next_state(State::open); }
  Next handle_event(State, Cast<Nowhere>) { return next_state(static_cast<State>(77)); }
  Next handle_event(State, Cast<AnswerNobody>) {
    From<std::string> nobody{};
    return keep_state().reply(nobody, "hello");
  }
  Next handle_event(State, Cast<PostponeAnother>) { return keep_state().postpone(Cast(Leave())); }
  void handle_event(In<State::open>, Cast<OnlyOpen>) {}

  Async<void> terminate(ExitReason reason, State state) {
    if (args_.fail == "wait in terminate") co_await otp::receive<GoOn>();
    say(reason.to_string() + " in " + std::string(enum_name(state)));
  }

 private:
  void say(std::string text) {
    if (args_.witness) send(args_.witness, Said{std::move(text)});
  }
  Args args_;
  From<std::string> held_{};
};

Async<Server<Gate>> gate(Pid witness = {}, std::string how = {}) {
  Gate::Args args{witness, std::move(how)};
  co_return (co_await start<Gate>(args)).or_exit();
}

// The reason with which a gate ends after `message`.
template <class M>
Async<std::string> end_after(M message) {
  auto machine = co_await gate();
  Reference down = monitor(machine.pid());
  cast(machine, message);
  ExitReason reason = co_await down_of(down);
  co_return reason.to_string();
}

Async<std::string> next_said() {
  auto message = co_await receive<Said>();
  co_return message.text;
}

}  // namespace

TEST_CASE("FSM-017 stop runs terminate with reason and state, then the process ends", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await gate(self());
    Reference down = monitor(machine.pid());
    cast(machine, Leave());
    End end{.reply = false};
    auto answer = co_await try_call(machine, end);
    require(!answer.ok(), "a call was answered by a stop");
    require_reason(answer.error(), "ended");
    require_equal(co_await next_said(), "ended in open");
    require_reason(co_await down_of(down), "ended");
  });
}

TEST_CASE("FSM-017 stop_and_reply sends the replies first, then terminate runs", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await gate(self(), "wait in terminate");
    Reference down = monitor(machine.pid());
    auto held = spawn_monitor(
        [machine]() -> Async<void> { require_equal(co_await call(machine, Hold()), "bye too"); });
    require_equal(co_await next_said(), "held");
    require_equal(co_await call(machine, End()), "bye");
    require_reason(co_await down_of(held.second), "normal");
    send(machine.pid(), GoOn());  // terminate has run to here only
    require_equal(co_await next_said(), "ended in shut");
    require_reason(co_await down_of(down), "ended");
  });
}

TEST_CASE("FSM-017 who was never answered gets the reason of the end", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await gate(self());
    auto held = spawn_monitor([machine]() -> Async<void> {
      auto answer = co_await try_call(machine, Hold());
      require(!answer.ok(), "answered");
      require_reason(answer.error(), "ended");
    });
    require_equal(co_await next_said(), "held");
    End end{.reply = false};
    (void)co_await try_call(machine, end);
    require_reason(co_await down_of(held.second), "normal");
    require_equal(co_await next_said(), "ended in shut");
  });
}

TEST_CASE("FSM-018 an event without a handler in this state is a function_clause crash", "[fsm]") {
  everywhere(
      []() -> Async<void> {
        require_equal(co_await end_after(OnlyOpen()),
                      "{function_clause,[{Gate,handle_event,[shut,cast,OnlyOpen]}]}");
      },
      kFewRounds);
}

TEST_CASE("FSM-018 a message of no type the machine knows is a function_clause crash", "[fsm]") {
  everywhere(
      []() -> Async<void> {
        auto machine = co_await gate();
        Reference down = monitor(machine.pid());
        send(machine.pid(), GoOn());
        require_reason(co_await down_of(down),
                       "{function_clause,[{Gate,handle_event,[shut,info,GoOn]}]}");
      },
      kFewRounds);
}

TEST_CASE("FSM-018 a bad return and bad actions crash with the value", "[fsm]") {
  everywhere(
      []() -> Async<void> {
        require_equal(co_await end_after(Nowhere()), "{bad_return_from_state_function,77}");
        require_equal(co_await end_after(AnswerNobody()),
                      "{bad_action_from_state_function,{reply,nobody}}");
        std::string postponed = co_await end_after(PostponeAnother());
        require(postponed.find("{bad_action_from_state_function,{postpone,") == 0, postponed);
      },
      kFewRounds);
}

TEST_CASE("FSM-018 an exception in a handler is the reason, after terminate", "[fsm]") {
  everywhere(
      []() -> Async<void> {
        auto machine = co_await gate(self());
        Reference down = monitor(machine.pid());
        cast(machine, Throw());
        ExitReason reason = co_await down_of(down);
        require(reason.to_string().find("{{std::runtime_error,\"in event\"}") == 0,
                reason.to_string());
        std::string said = co_await next_said();
        require(said.find("in event") != std::string::npos, said);
      },
      kFewRounds);
}

TEST_CASE("FSM-019 a call that takes too long exits with timeout, and no reply comes later",
          "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto machine = co_await gate();
        Slow slow;
        CallOptions options{.timeout = 50ms};
        std::string reason;
        try {
          (void)co_await call(machine, slow, options);
        } catch (const Exit& exit) {
          reason = exit.reason().to_string();
        }
        require(reason.find("{timeout,{gen_statem,call,[") == 0, reason);
        co_await otp::sleep(200ms);
        co_await require_silence();
        require_equal(co_await call(machine, Where()), "shut");
        co_await stop(machine);
      },
      kFewRounds);
}

TEST_CASE("FSM-021 start and start_link fail as a server's do", "[fsm]") {
  simulate(
      []() -> Async<void> {
        trap_exit(true);
        auto reason_of = [](std::string how, Timeout timeout = infinity) -> Async<std::string> {
          Gate::Args args{{}, std::move(how)};
          StartOptions options{.timeout = timeout};
          auto started = co_await start_link<Gate>(args, options);
          if (started.ignored()) co_return "ignored";
          if (started.ok()) co_await stop(started.value());
          co_return started.ok() ? "ok" : started.error().to_string();
        };
        require_equal(co_await reason_of("stop"), "stopped");
        require_equal(co_await reason_of("error"), "wrong");
        require_equal(co_await reason_of("ignore"), "ignored");
        require_equal(co_await reason_of("slow", 100ms), "timeout");
        std::string thrown = co_await reason_of("throw");
        require(thrown.find("{{std::runtime_error,\"no luck\"}") == 0, thrown);
        while (co_await receive<ExitMessage>(after(0s))) {}
      },
      kFewRounds);
}

TEST_CASE("FSM-021 a name is taken once, works as an address and is free after stop", "[fsm]") {
  everywhere([]() -> Async<void> {
    StartOptions options{.name = "gate"};
    auto first = (co_await start<Gate>({}, options)).or_exit();
    auto second = co_await start<Gate>({}, options);
    require(!second.ok(), "two have one name");
    require_reason(second.error(), "{already_started," + first.pid().to_string() + "}");
    Name<Gate> name("gate");
    cast(name, Leave());
    require_equal(co_await call(name, Where()), "open");
    co_await stop(first, ExitReason::shutdown());
    require(!whereis("gate"), "the name is left");
    auto gone = co_await try_call(name, Where());
    require(!gone.ok() && gone.error().is("noproc"), "somebody answered");
    auto third = (co_await start<Gate>({}, options)).or_exit();
    co_await stop(third);
  });
}

TEST_CASE("FSM-021 stop waits for the end, and says when it was another one", "[fsm]") {
  everywhere([]() -> Async<void> {
    auto machine = co_await gate(self());
    Reference down = monitor(machine.pid());
    cast(machine, Leave());
    co_await stop(machine);
    require_equal(co_await next_said(), "normal in open");
    require_reason(co_await down_of(down), "normal");
    std::string reason;
    try {
      co_await stop(machine);
    } catch (const Exit& exit) {
      reason = exit.reason().to_string();
    }
    require(reason.find("noproc") != std::string::npos, reason);
  });
}

TEST_CASE("FSM-021 a supervised machine restarts in its first state", "[fsm]") {
  everywhere(
      []() -> Async<void> {
        SupervisorSpec spec{.intensity = 10, .children = {child<Gate>("gate", {}, {.name = "g"})}};
        auto supervisor = (co_await Supervisor::start_link(spec)).or_exit();
        Name<Gate> name("g");
        cast(name, Leave());
        Pid first = *whereis("g");
        Reference down = monitor(first);
        cast(name, Throw());
        (void)co_await down_of(down);
        // The new one has the name once the supervisor has started it.
        (void)co_await Supervisor::which_children(supervisor);
        require_equal(co_await call(name, Where()), "shut");
        unlink(supervisor.pid());
        co_await stop(supervisor.pid(), ExitReason::shutdown());
      },
      kFewRounds);
}
