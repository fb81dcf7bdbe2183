#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"
#include "tests/conformance/scene.h"

/// What the tests of supervisors share: a worker that can be told to misbehave, and a witness (the
/// test's own process) that is told what the workers do, in order.
namespace otp::supervision_testing {

struct Event {
  std::string text;
};

/// How often a worker's start fails from now on; shared by all lives of a worker on purpose.
struct Trouble {
  std::mutex mutex;
  int failures = 0;        // starts that will throw
  int ignores = 0;         // starts that will be ignored
  Duration start_time{0};  // of each init
  int starts = 0;
};

class Worker {
 public:
  struct Args {
    std::string id{};
    Pid witness{};
    bool trap = true;
    Duration stop_time{0};  // in terminate
    bool stubborn = false;  // never stops by itself
    std::shared_ptr<Trouble> trouble{};
    int number = 0;
  };
  struct End {
    ExitReason reason;
  };
  struct Throw {};
  struct Number {
    using Reply = int;
    int set = 0;
  };
  struct UnlinkParent {
    Pid parent;
  };

  explicit Worker(Args args) : args_(std::move(args)) { trap_exit(args_.trap); }
  Async<Init> init() {
    if (args_.trouble) {
      Duration start_time;
      {
        std::lock_guard lock(args_.trouble->mutex);
        ++args_.trouble->starts;
        start_time = args_.trouble->start_time;
      }
      if (start_time > Duration(0)) {
        tell("init");
        co_await otp::sleep(start_time);
      }
      std::lock_guard lock(args_.trouble->mutex);
      if (args_.trouble->ignores-- > 0) co_return otp::ignore();
      if (args_.trouble->failures-- > 0) throw std::runtime_error("no luck");
    }
    tell("start");
    co_return otp::ok();
  }
  void handle_cast(Throw) { throw std::runtime_error("boom"); }
  CastResult handle_cast(End end) { return otp::stop(std::move(end.reason)); }
  void handle_cast(UnlinkParent message) { unlink(message.parent); }
  int handle_call(Number message) { return std::exchange(args_.number, message.set); }
  Async<void> terminate(ExitReason reason) {
    if (args_.stubborn) co_await otp::sleep(infinity);
    if (args_.stop_time > Duration(0)) {
      tell("told");
      co_await otp::sleep(args_.stop_time);
    }
    const auto& parts = reason.term().items();
    bool thrown = !parts.empty() && parts[0].kind() == Term::Kind::tuple;
    tell("stop", thrown ? "crashed" : reason.to_string());
  }

 private:
  void tell(std::string what, std::string detail = {}) {
    if (!args_.witness) return;
    std::string text = what + " " + args_.id;
    if (!detail.empty()) text += " " + detail;
    (void)otp::send(args_.witness, Event{std::move(text)});
  }
  Args args_;
};

using namespace otp::scene;

inline ChildSpec worker(std::string id, ChildOptions options = {}, Worker::Args args = {}) {
  args.id = id;
  if (!args.witness) args.witness = self();
  if (options.name.empty()) options.name = id;
  return child<Worker>(std::move(id), std::move(args), std::move(options));
}

/// The next events as one text, "start a,start b".
inline Async<std::string> events(int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    auto event = co_await receive<Event>(after(std::chrono::seconds(20)));
    if (i > 0) all += ",";
    all += event ? event->text : "nothing";
  }
  co_return all;
}
inline Async<void> expect(int count, std::string wanted) {
  std::string got = co_await events(count);
  require(got == wanted, "expected " + wanted + ", got " + got);
}
inline Async<ExitReason> down_of(Pid pid) {
  Reference reference = monitor(pid);
  auto ours = [reference](const Down& each) { return each.reference == reference; };
  Down down = co_await receive<Down>(ours);
  co_return down.reason;
}
inline Pid pid_of(std::string name) { return whereis(name).value_or(Pid()); }
inline void crash(std::string name) {
  (void)otp::cast(Server<Worker>(Name<Worker>(name)), Worker::Throw{});
}
inline void end(std::string name, ExitReason reason) {
  (void)otp::cast(Server<Worker>(Name<Worker>(name)), Worker::End{std::move(reason)});
}
inline ChildSpec with(ChildSpec spec, Restart restart) {
  spec.restart = restart;
  return spec;
}
/// The listing as text, newest first: "c stopped,b running".
inline Async<std::string> listing(SupervisorRef sup) {
  std::string all;
  for (const ChildInfo& child : co_await Supervisor::which_children(sup)) {
    if (!all.empty()) all += ",";
    all += child.id + (child.state == ChildState::running   ? " running"
                       : child.state == ChildState::stopped ? " stopped"
                                                            : " restarting");
  }
  co_return all;
}
inline SupervisorSpec only(ChildSpec spec, uint32_t intensity = 10) {
  return {.intensity = intensity, .children = {std::move(spec)}};
}
/// Starts a supervisor, whose end this process sees as a message.
inline Async<SupervisorRef> start(SupervisorSpec spec) {
  trap_exit(true);
  co_return (co_await Supervisor::start_link(std::move(spec))).or_exit();
}
/// Ends a supervisor as its parent does and waits until it is gone.
inline Async<ExitReason> stop_sup(Pid sup, ExitReason reason = ExitReason::shutdown()) {
  otp::exit(sup, std::move(reason));
  co_return co_await down_of(sup);
}

}  // namespace otp::supervision_testing

template <>
struct otp::Shareable<otp::supervision_testing::Worker::End> : std::true_type {};
