#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "otp/behaviour/gen_statem.h"
#include "otp/runtime/runtime.h"
#include "tests/conformance/worlds.h"

/// A state machine that writes down every event it gets, and does on each what the event says.
namespace otp::testing {

enum class Place { a, b, c };

/// Content of timeouts and of inserted events: only written down.
struct Note {
  std::string name;
};
struct Query {
  using Reply = std::string;
  std::string name;
};

/// An event that says what to do.
struct Do {
  std::string name;
  std::optional<Place> to{};  // next_state
  bool repeat = false;
  std::string postpone_in{};          // "ab": postponed in these states
  std::vector<std::string> insert{};  // types of events: "cast", "internal", ...
  std::optional<Duration> event_timeout{};
  std::optional<Duration> state_timeout{};
  std::optional<Duration> timeout_1{};
  std::optional<Duration> timeout_2{};
  Duration busy{};  // the handler waits
};
/// The same as a call: answers with its name, or keeps the caller for AnswerAll.
struct Ask {
  using Reply = std::string;
  Do what{};
  bool keep = false;
};
struct AnswerAll {};
struct Tape {
  using Reply = std::vector<std::string>;
};

class Recorder {
 public:
  using Behaviour = GenStatem;
  using State = Place;
  using Info = Protocol<Do>;
  struct Args {
    Do first{};
  };
  using Next = Transition<Recorder>;

  explicit Recorder(Args args) : first_(std::move(args.first)) {}
  Initial<Recorder> init() {
    if (first_.name.empty()) return otp::ok(Place::a);
    auto plan = otp::ok(Place::a).next_event(Internal(Note{"first"}));
    return std::move(plan).state_timeout(
        first_.state_timeout ? Timeout(*first_.state_timeout) : infinity, Note{"from init"});
  }

  void handle_enter(Place place, Place old) { write("enter " + word(place) + "<" + word(old)); }

  Async<Next> handle_event(Place place, Cast<Do> event) { return run("cast", place, event); }
  Async<Next> handle_event(Place place, otp::Info<Do> event) { return run("info", place, event); }
  Next handle_event(Place place, Call<Ask> call) {
    write("call:" + call->what.name + "@" + word(place));
    if (call->what.postpone_in.find(word(place)) != std::string::npos) {
      return keep_state().postpone(std::move(call));
    }
    if (call->keep) {
      waiting_.push_back(call.from);
      return keep_state();
    }
    Next next = target(call->what);
    next.reply(call, call->what.name);
    return next;
  }
  Next handle_event(Place place, Cast<AnswerAll>) {
    auto done = keep_state();
    for (auto& from : waiting_) done.reply(from, "answered in " + word(place));
    waiting_.clear();
    return done;
  }
  Next handle_event(Place, Call<Tape> call) { return keep_state().reply(call, tape_); }

  // What only writes.
  void handle_event(Place place, Cast<Note> event) { note("cast", place, event->name); }
  void handle_event(Place place, otp::Info<Note> event) { note("info", place, event->name); }
  void handle_event(Place place, Internal<Note> event) { note("internal", place, event->name); }
  void handle_event(Place place, EventTimeout<Note> event) { note("timeout", place, event->name); }
  void handle_event(Place place, StateTimeout<Note> event) {
    note("state_timeout", place, event->name);
  }
  void handle_event(Place place, NamedTimeout<Note> event) {
    note(event.name.term().to_string(), place, event->name);
  }
  Next handle_event(Place place, Call<Query> call) {
    note("call", place, call->name);
    return keep_state().reply(call, "inserted");
  }
  void handle_event(Place, otp::Info<Down>) {}

 private:
  template <class E>
  Async<Next> run(std::string type, Place place, E event) {
    const Do& what = event.message;
    write(type + ":" + what.name + "@" + word(place));
    if (what.busy.count() > 0) co_await otp::sleep(what.busy);
    if (what.postpone_in.find(word(place)) != std::string::npos) {
      co_return keep_state().postpone(std::move(event));
    }
    Next next = target(what);
    for (const std::string& each : what.insert) add(next, each, what.name);
    if (what.event_timeout) next.event_timeout(time(what.event_timeout), Note{what.name});
    if (what.state_timeout) next.state_timeout(time(what.state_timeout), Note{what.name});
    if (what.timeout_1) next.timeout("n1", time(what.timeout_1), Note{what.name});
    if (what.timeout_2) next.timeout("n2", time(what.timeout_2), Note{what.name});
    co_return next;
  }
  static Next target(const Do& what) {
    if (what.repeat) return repeat_state();
    if (what.to) return next_state(*what.to);
    return keep_state();
  }
  static TimeoutAt time(std::optional<Duration> time) {
    return time->count() < 0 ? Timeout(infinity) : Timeout(*time);
  }
  static void add(Next& next, const std::string& type, const std::string& name) {
    Note note{name};
    if (type == "cast") next.next_event(Cast(note));
    if (type == "info") next.next_event(otp::Info(note));
    if (type == "internal") next.next_event(Internal(note));
    if (type == "timeout") next.next_event(EventTimeout(note));
    if (type == "state_timeout") next.next_event(StateTimeout(note));
    if (type == "n1") next.next_event(NamedTimeout("n1", note));
    if (type == "call") next.next_event(Call<Query>{{name}, {self(), make_ref(), self()}});
    if (type == "go b") next.next_event(Cast(Do{.name = "go", .to = Place::b}));
  }
  static std::string word(Place place) { return std::string(enum_name(place)); }
  void write(std::string line) { tape_.push_back(std::move(line)); }
  void note(const std::string& type, Place place, const std::string& name) {
    write(type + ":" + name + "@" + word(place));
  }

  Do first_;
  std::vector<std::string> tape_;
  std::vector<From<std::string>> waiting_;
};

inline constexpr Duration kStop{-1};  // as a time: infinity

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& each : lines) text += (text.empty() ? "" : ", ") + each;
  return text;
}

/// Starts a Recorder.
inline Async<Server<Recorder>> recorder(Do first = {}) {
  Recorder::Args args{std::move(first)};
  co_return (co_await start<Recorder>(std::move(args))).or_exit();
}
/// Requires the tape to hold exactly these lines, and ends the machine.
inline Async<void> require_tape(Server<Recorder> machine, std::string expected) {
  auto tape = co_await call(machine, Tape());
  require_equal(joined(tape), expected);
  co_await stop(machine);
}

}  // namespace otp::testing
