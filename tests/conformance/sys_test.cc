#include "otp/behaviour/sys.h"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/base/secret.h"
#include "otp/supervision/supervisor.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Add {
  using Reply = int;
  int by = 1;
};
struct Note {
  std::string text;
};
struct Fail {};
struct Ping {
  int number = 0;
};

/// Keeps its data in a State, and counts there how often a handler ran.
class Meter {
 public:
  struct State {
    int value = 0;
    int handled = 0;
    std::vector<std::string> notes{};
    Secret pin{"4711"};
  };
  State state_;

  int handle_call(Add msg) {
    ++state_.handled;
    state_.notes.push_back("add " + std::to_string(msg.by));
    return state_.value += msg.by;
  }
  void handle_cast(Note msg) {
    ++state_.handled;
    state_.notes.push_back(std::move(msg.text));
  }
  void handle_info(Ping msg) { state_.notes.push_back("ping " + std::to_string(msg.number)); }
};

/// Without a State.
class Plain {
 public:
  int handle_call(Add msg) { return value_ += msg.by; }

 private:
  int value_ = 0;
};

/// Hides what it has; fails to when it is told so.
class Shy {
 public:
  struct State {
    std::string password = "swordfish";
    bool broken = false;
  };
  State state_;

  void format_status(BoundedWriter& out) const {
    out.write("password: ");
    if (state_.broken) throw std::runtime_error("no words");
    out.write("***");
  }
  void handle_cast(Fail) { state_.broken = true; }
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& each : texts) all += each + "|";
  return all;
}

template <class S>
Async<Server<S>> started() {
  auto result = co_await start_link<S>();
  co_return std::move(result).or_exit();
}

Async<Meter::State> state_of(Server<Meter> meter) {
  auto state = co_await sys::get_state(meter);
  co_return std::move(state).or_exit();
}

}  // namespace

TEST_CASE("SYS-001 get_state is answered between two messages, by no handler", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    Add two{2};
    (void)co_await call(meter, two);
    Note note{"x"};
    cast(meter, note);
    const Meter::State state = co_await state_of(meter);
    require(state.value == 2 && state.handled == 2, "not after what was sent before");
    const Meter::State again = co_await state_of(meter);
    require(again.handled == 2, "a handler ran");
    co_await stop(meter);
  });
}

TEST_CASE("SYS-001 get_state is answered while the server is suspended", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    (co_await sys::suspend(meter)).or_exit();
    Note note{"waits"};
    cast(meter, note);
    const Meter::State state = co_await state_of(meter);
    require(state.handled == 0, "a suspended server handled a message");
    (co_await sys::resume(meter)).or_exit();
    const Meter::State after = co_await state_of(meter);
    require(after.handled == 1, "the message that waited is lost");
    co_await stop(meter);
  });
}

TEST_CASE("SYS-001 get_state of a pid is text, without secrets", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto meter = co_await started<Meter>();
        Note note{"hello"};
        cast(meter, note);
        auto text = co_await sys::get_state(meter.pid());
        require_equal(std::move(text).or_exit(),
                      "State{value: 0, handled: 1, notes: [\"hello\"], pin: ***}");
        co_await stop(meter);
      },
      kFewRounds);
}

TEST_CASE("SYS-001 get_state of a server without a State says why it cannot", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto plain = co_await started<Plain>();
        auto text = co_await sys::get_state(plain);
        require(!text.ok(), "it has a state");
        require_equal(text.error().to_string(),
                      "{no_state,\"Plain has no public member `State state_`\"}");
        auto typed = co_await sys::get_state_as<Meter::State>(plain);
        require_reason(typed.error(), "{no_state,State}");
        co_await stop(plain);
      },
      kFewRounds);
}

TEST_CASE("SYS-001 a supervisor tells its state, also while suspended", "[sys]") {
  everywhere(
      []() -> Async<void> {
        SupervisorSpec spec;
        spec.children.push_back(child<Meter>("meter"));
        auto supervisor = (co_await Supervisor::start_link(std::move(spec))).or_exit();
        (co_await sys::suspend(supervisor)).or_exit();
        auto text = co_await sys::get_state(supervisor);
        require(contains(std::move(text).or_exit(), "one_for_one"), "no strategy in it");
        auto status = (co_await sys::get_status(supervisor)).or_exit();
        require(status.mode == sys::Mode::suspended, "not suspended");
        (co_await sys::resume(supervisor)).or_exit();
        auto children = co_await Supervisor::which_children(supervisor);
        require(children.size() == 1, "it does not go on");
        trap_exit(true);
        co_await stop(supervisor, ExitReason::shutdown());
        (void)co_await receive<ExitMessage>();
      },
      kFewRounds);
}

TEST_CASE("SYS-002 replace_state runs the function in the server and gives the new state",
          "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    Add one{1};
    (void)co_await call(meter, one);
    const Pid expected = meter.pid();
    auto f = [expected](Meter::State state) {
      state.value = self() == expected ? state.value + 41 : -1;
      return state;
    };
    auto replaced = co_await sys::replace_state(meter, f);
    require(replaced.ok() && replaced.value().value == 42, "the new state is not returned");
    const int value = co_await call(meter, one);
    require(value == 43, "the new state is not used");
    co_await stop(meter);
  });
}

TEST_CASE("SYS-002 replace_state with a function that fails leaves the old state", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    auto f = [](Meter::State state) -> Meter::State {
      state.value = 99;
      throw Exit(ExitReason::atom("oops"));
    };
    auto replaced = co_await sys::replace_state(meter, f);
    require_reason(replaced.error(), "{callback_failed,oops}");
    const Meter::State state = co_await state_of(meter);
    require(state.value == 0, "the state was changed");
    co_await stop(meter);
  });
}

namespace {

Async<void> suspend_call_resume() {
  auto meter = co_await started<Meter>();
  (co_await sys::suspend(meter)).or_exit();
  Note first{"first"};
  Note last{"last"};
  cast(meter, first);
  Add two{2};
  auto reply = co_await try_call(meter, two, {.timeout = 50ms});
  require(!reply.ok(), "a suspended server answered");
  require_reason(reply.error(), "timeout");
  Ping ping{7};
  (void)otp::send(meter, ping);
  cast(meter, last);
  const Meter::State before = co_await state_of(meter);
  require(before.handled == 0, "it handled something while suspended");
  (co_await sys::resume(meter)).or_exit();
  const Meter::State after = co_await state_of(meter);
  require_equal(joined(after.notes), "first|add 2|ping 7|last|");
  require(after.value == 2, "the call that had timed out was not handled");
  co_await stop(meter);
  co_await require_silence();
}

}  // namespace

TEST_CASE("SYS-003 a suspended server answers no call, and all that waited when resumed", "[sys]") {
  simulate(&suspend_call_resume);
  on_threads(&suspend_call_resume, 3);
}

TEST_CASE("SYS-003 suspending and resuming twice is as once", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    (co_await sys::resume(meter)).or_exit();
    (co_await sys::suspend(meter)).or_exit();
    (co_await sys::suspend(meter)).or_exit();
    (co_await sys::resume(meter)).or_exit();
    Add one{1};
    const int value = co_await call(meter, one);
    require(value == 1, "it is still suspended");
    co_await stop(meter);
  });
}

TEST_CASE("SYS-003 a suspended server can be stopped, and ends with its parent", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    (co_await sys::suspend(meter)).or_exit();
    co_await stop(meter);
    auto other = (co_await start<Meter>()).or_exit();
    (co_await sys::suspend(other)).or_exit();
    auto seen = monitor(other.pid());
    (co_await sys::terminate(other, ExitReason::shutdown())).or_exit();
    const ExitReason reason = co_await down_of(seen);
    require_reason(reason, "shutdown");
  });
}

namespace {

/// Asks for an idle timeout of 100 ms with its first message.
class Idler {
 public:
  struct State {
    int timeouts = 0;
  };
  State state_;
  CastResult handle_cast(Note) { return noreply().timeout(100ms); }
  void handle_info(IdleTimeout) { ++state_.timeouts; }
};

}  // namespace

TEST_CASE("SYS-003 an idle timeout is not disturbed by sys", "[sys]") {
  simulate([]() -> Async<void> {
    auto idler = co_await started<Idler>();
    Note note{"go"};
    cast(idler, note);
    co_await otp::sleep(60ms);
    auto early = (co_await sys::get_state(idler)).or_exit();
    require(early.timeouts == 0, "too early");
    (co_await sys::suspend(idler)).or_exit();
    (co_await sys::resume(idler)).or_exit();
    co_await otp::sleep(60ms);
    auto late = (co_await sys::get_state(idler)).or_exit();
    require(late.timeouts == 1, "the timeout is lost");
    co_await stop(idler);
  });
}

TEST_CASE("SYS-003 sys reaches a server whose mailbox is full", "[sys]") {
  everywhere([]() -> Async<void> {
    StartOptions options{.mailbox = {.letters_max = 2}};
    auto meter = (co_await start_link<Meter>({}, options)).or_exit();
    (co_await sys::suspend(meter)).or_exit();
    for (int i = 0; i < 5; ++i) {
      Ping ping{i};
      (void)otp::send(meter, ping);
    }
    (co_await sys::resume(meter)).or_exit();
    const Meter::State state = co_await state_of(meter);
    require_equal(joined(state.notes), "ping 0|ping 1|");
    co_await stop(meter);
  });
}

TEST_CASE("SYS-004 get_status tells mode, parent, callback identity, ancestors and state",
          "[sys]") {
  everywhere(
      []() -> Async<void> {
        StartOptions options{.name = "meter"};
        auto meter = (co_await start_link<Meter>({}, options)).or_exit();
        auto status = (co_await sys::get_status(meter)).or_exit();
        require(status.mode == sys::Mode::running, "not running");
        require(status.pid == meter.pid() && status.parent == self(), "wrong pids");
        require_equal(status.name, "meter");
        require_equal(status.behaviour, "gen_server");
        require_equal(status.initial_call, "Meter");
        require(!status.ancestors.empty() && status.ancestors.front() == self(), "no ancestors");
        require(contains(status.state, "value: 0"), "no state");
        require(!contains(status.state, "4711"), "a secret is shown");
        (co_await sys::suspend(meter)).or_exit();
        auto suspended = (co_await sys::get_status(meter)).or_exit();
        require(suspended.mode == sys::Mode::suspended, "not suspended");
        co_await stop(meter);
      },
      kFewRounds);
}

TEST_CASE("SYS-004 format_status hides what the server wants hidden, and may fail", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto shy = co_await started<Shy>();
        auto status = (co_await sys::get_status(shy)).or_exit();
        require_equal(status.state, "password: ***");
        cast(shy, Fail());
        auto broken = (co_await sys::get_status(shy)).or_exit();
        require(contains(broken.state, "formatting it failed: std::runtime_error: no words"),
                broken.state);
        require(!contains(broken.state, "swordfish"), "the secret is shown");
        require(is_alive(shy.pid()), "it died of its formatter");
        co_await stop(shy);
      },
      kFewRounds);
}

TEST_CASE("SYS-005 a state query of a dead process gives noproc", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    co_await stop(meter);
    auto state = co_await sys::get_state(meter);
    require_reason(state.error(), "noproc");
    auto unknown = co_await sys::get_state(Name<Meter>("nobody"));
    require_reason(unknown.error(), "noproc");
    auto own = co_await sys::get_state(self());
    require_reason(own.error(), "calling_self");
  });
}

TEST_CASE("SYS-005 a process that does not speak sys lets the query time out", "[sys]") {
  simulate(
      []() -> Async<void> {
        Pid plain = spawn(&wait_for_ever);
        const Duration before = now();
        auto state = co_await sys::get_state(plain, {.timeout = 100ms});
        require_reason(state.error(), "timeout");
        require(now() - before == 100ms, "at another time");
        co_await end(plain);
        co_await require_silence();
      },
      kFewRounds);
}

TEST_CASE("SYS-006 statistics count messages in and replies out", "[sys]") {
  everywhere([]() -> Async<void> {
    auto meter = co_await started<Meter>();
    auto off = co_await sys::get_statistics(meter);
    require_reason(off.error(), "no_statistics");
    (co_await sys::statistics(meter, true)).or_exit();
    Add one{1};
    Note note{"n"};
    (void)co_await call(meter, one);
    (void)co_await call(meter, one);
    cast(meter, note);
    auto figures = (co_await sys::get_statistics(meter)).or_exit();
    require(figures.messages_in == 3 && figures.messages_out == 2, "wrong counts");
    (co_await sys::statistics(meter, false)).or_exit();
    auto again = co_await sys::get_statistics(meter);
    require_reason(again.error(), "no_statistics");
    co_await stop(meter);
  });
}

TEST_CASE("SYS-006 the event log keeps the newest calls, casts and replies", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto meter = co_await started<Meter>();
        (co_await sys::log(meter, 3)).or_exit();
        Add one{1};
        Note note{"n"};
        (void)co_await call(meter, one);
        cast(meter, note);
        (void)co_await call(meter, one);
        auto events = (co_await sys::get_log(meter)).or_exit();
        const std::string me = self().to_string();
        require_equal(joined(events), "cast Note{text: \"n\"} from " + me +
                                          "|call Add{by: 1} from " + me + "|reply 2 to " + me +
                                          "|");
        auto status = (co_await sys::get_status(meter)).or_exit();
        require(status.log.size() == 3, "not in the status");
        (co_await sys::log(meter, 0)).or_exit();
        (void)co_await call(meter, one);
        auto none = (co_await sys::get_log(meter)).or_exit();
        require(none.empty(), "it goes on");
        co_await stop(meter);
      },
      kFewRounds);
}

TEST_CASE("SYS-006 an installed function sees each event until it says no or is removed", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto meter = co_await started<Meter>();
        const Pid me = self();
        auto tell = [me](const sys::Event& event) {
          Note note{std::string(event.type) + (event.is_out() ? " out" : " in")};
          (void)otp::send(me, note);
          return event.type != "Note";
        };
        (co_await sys::install(meter, "tell", tell)).or_exit();
        auto twice = co_await sys::install(meter, "tell", tell);
        require_reason(twice.error(), "already_installed");
        Add one{1};
        Note stop_telling{"n"};
        (void)co_await call(meter, one);
        cast(meter, stop_telling);
        (void)co_await call(meter, one);
        std::vector<std::string> seen;
        while (auto note = co_await receive<Note>(after(0ms))) seen.push_back(note->text);
        require_equal(joined(seen), "Add in|int out|Note in|");
        (co_await sys::install(meter, "tell", tell)).or_exit();
        (co_await sys::remove(meter, "tell")).or_exit();
        (void)co_await call(meter, one);
        auto more = co_await receive<Note>(after(0ms));
        require(!more.has_value(), "it was not removed");
        co_await stop(meter);
      },
      kFewRounds);
}

TEST_CASE("SYS-006 an installed function that throws goes, and harms nobody", "[sys]") {
  everywhere(
      []() -> Async<void> {
        auto meter = co_await started<Meter>();
        auto bad = [](const sys::Event&) -> bool { throw std::runtime_error("bad"); };
        (co_await sys::install(meter, "bad", bad)).or_exit();
        Add one{1};
        const int value = co_await call(meter, one);
        require(value == 1, "the call suffered");
        auto again = co_await sys::install(meter, "bad", bad);
        require(again.ok(), "it is still there");
        (co_await sys::no_debug(meter)).or_exit();
        co_await stop(meter);
      },
      kFewRounds);
}
