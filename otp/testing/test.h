#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "otp/runtime/runtime.h"
#include "otp/supervision/child_spec.h"

/// Tests of processes: a body that runs as a process, in virtual time under many seeds or on real
/// threads, with what a test needs there. Works under any test framework: what fails is thrown.
///
///     TEST_CASE("a counter counts") {
///       otp::test::in_simulator([]() -> otp::Async<void> {
///         auto counter = co_await otp::test::start_supervised<Counter>({.start = 40});
///         otp::test::expect(co_await Counter::increment(counter, 2) == 42, "the sum");
///       });
///     }
///
/// The page docs/testing.md teaches it. Not for handlers alone: those are plain functions and need
/// no process.
///
/// OTP: ExUnit's start_supervised, assert_receive and refute_receive; virtual time is ours.
namespace otp::test {

/// What an expectation throws that was not met.
class Failed : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// ---- From the test's own thread

using Body = std::function<Async<void>()>;

/// Runs `body` as a process of a Simulator, once under each of the seeds 1 to `seeds`. A timeout of
/// five seconds inside takes no time. When it has ended, what start_supervised started is stopped,
/// the last first, and whatever else still runs is killed.
///
/// Takes:  seeds: each is another interleaving. With OTP_SEED=17 in the environment only seed 17
///         runs.
/// Errors: throws Failed with the seed, how to replay it, and what left the body.
void in_simulator(const Body& body, uint64_t seeds = 100);

/// Runs `body` as a process of a System with two cores, `rounds` times. For what a Simulator cannot
/// show: real sockets, child programs, data races under a sanitizer.
///
/// Errors: as in_simulator, with the round.
void on_threads(const Body& body, uint64_t rounds = 10);

// ---- In the body

/// Throws Failed unless `condition` holds. `what` says what was expected.
void expect(bool condition, const std::string& what);

/// Starts a child of the test's own supervisor, which restarts it as its specification says and
/// stops it when the body has ended.
///
/// Errors: throws Failed with the reason if it does not start, or its id is taken.
/// OTP:    start_supervised!/2.
Async<Pid> start_supervised(ChildSpec spec);

/// The same for a server; its id is the name of its type.
template <class S>
Async<Server<S>> start_supervised(typename S::Args args = {}, ChildOptions options = {}) {
  ChildSpec spec =
      child<S>(std::string(otp::type_name<S>()), std::move(args), std::move(options));
  const Pid pid = co_await start_supervised(std::move(spec));
  co_return Server<S>(pid);
}

/// Stops the child with this id and forgets it. False: there is none. OTP: stop_supervised/1.
Async<bool> stop_supervised(std::string id);
template <class S>
Async<bool> stop_supervised() {
  return stop_supervised(std::string(otp::type_name<S>()));
}

/// How long expect_receive waits unless told: in a Simulator 100 ms of virtual time, on threads 10
/// s, as a busy machine is no failure.
Timeout patience();

namespace detail {
[[noreturn]] void not_received(std::string_view type, Timeout within);
[[noreturn]] void received(std::string_view type);
}  // namespace detail

/// The oldest message of type M in the mailbox, waiting for it up to `within`; all others stay.
///
/// Errors: throws Failed with the types of what is in the mailbox.
/// OTP:    assert_receive/3; with a time of zero assert_received/2.
template <class M>
Async<M> expect_receive(Timeout within = patience()) {
  std::optional<M> message = co_await receive<M>(after(within));
  if (!message) detail::not_received(otp::type_name<M>(), within);
  co_return std::move(*message);
}
/// Only a message for which `predicate(const M&)` is true.
template <class M, class Predicate>
  requires std::is_invocable_r_v<bool, Predicate, const M&>
Async<M> expect_receive(Predicate predicate, Timeout within = patience()) {
  std::optional<M> message = co_await receive<M>(std::move(predicate), after(within));
  if (!message) detail::not_received(otp::type_name<M>(), within);
  co_return std::move(*message);
}

/// Fails if a message of type M is in the mailbox or comes within `time`. On threads that shows
/// only that none came yet, and takes that long; in a Simulator it is exact and takes nothing. OTP:
/// refute_receive/3.
template <class M>
Async<void> refute_receive(Timeout time = std::chrono::milliseconds(100)) {
  std::optional<M> message = co_await receive<M>(after(time));
  if (message) detail::received(otp::type_name<M>());
}

/// Waits until `pid` is gone and gives its exit reason; `noproc` if it was gone already.
/// Errors: throws Failed when it lives on after `within`.
Async<ExitReason> expect_down(Pid pid, Timeout within = patience());

/// Empties the mailbox; the types of what was in it, the oldest first. OTP: IEx's flush/0.
std::vector<std::string> flush();

/// Time of the clock that timers follow: virtual in a Simulator.
Duration now();

}  // namespace otp::test
