#pragma once

#include <chrono>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/async/async.h"
#include "otp/base/result.h"
#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/sys_event.h"
#include "otp/behaviour/sys_process.h"

/// sys: looking into a running server, stopping it for a while, watching what goes in and out.
///
///     auto state = co_await otp::sys::get_state(counter);           // Result<Counter::State>
///     auto text = co_await otp::sys::get_state(counter.pid());      // Result<std::string>
///     (co_await otp::sys::suspend(counter)).or_exit();
///     (co_await otp::sys::install(counter, "slow", [](const otp::sys::Event& event) {...}));
///
/// Every behaviour of the library answers (GenServer, Supervisor, gen_statem, ...), between two
/// messages and without a callback of its protocol being run; also when it is suspended or its
/// mailbox is full. What is switched off costs a server nothing.
///
/// Returns: each a Result. Errors: `noproc`; the reason of a server that ends meanwhile; `timeout`:
///          a callback took longer than options.timeout, or the process does not speak sys;
///          `calling_self`.
/// Threads: inside a process; threads outside use System::run.
/// OTP:     sys. Differs: results instead of exits; typed states.
namespace otp::sys {

struct Options {
  Timeout timeout = std::chrono::seconds(5);
};

/// Whom to ask: a Pid, a Server<S> or a Name<S>.
class Target {
 public:
  Target(Pid pid) : pid_(pid) {}
  template <class S>
  Target(const Server<S>& server) : pid_(server.pid()) {}
  template <class S>
  Target(const Name<S>& name) : pid_(Server<S>(name).pid()) {}
  Pid pid() const { return pid_; }

 private:
  Pid pid_;
};

}  // namespace otp::sys

namespace otp::internal {

/// A system request under way.
class SysCall : public CallBase {
 public:
  SysCall(Pid target, Timeout timeout, Letter* request) : CallBase(target, timeout, request) {}
  bool await_ready() noexcept { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  /// The reply; null: error() says why.
  Letter* await_resume() { return finish(error_); }
  ExitReason error() const { return error_; }

 private:
  ExitReason error_;
};

/// `R` begins with a SystemRequest.
template <class R>
Letter* make_system_letter(R request) {
  Letter* letter = make_call_letter<R>(plain_operation<R>, std::move(request));
  letter->kind = LetterKind::system;
  return letter;
}

template <class T>
Async<Result<T>> ask_system(Pid target, Timeout timeout, Letter* request) {
  SysCall call(target, timeout, request);
  Letter* reply = co_await call;
  if (reply == nullptr) co_return call.error();
  if constexpr (std::is_void_v<T>) {
    self_process().consume(reply);
    co_return Result<void>();
  } else {
    co_return take_reply_value<T>(self_process(), reply);
  }
}

/// Answers a request with `value`.
template <class T>
void answer_system(SysProcess& process, Letter& letter, T value) {
  process.reply_system(letter,
                       make_letter<T>(LetterKind::reply, plain_operation<T>, std::move(value)));
}

template <class State>
ExitReason no_state_of_type() {
  return ExitReason::tagged("no_state", Term::atom(std::string(type_name<State>())));
}

template <class State>
void run_get_state(SysProcess& process, Letter& letter) {
  auto* state = static_cast<const State*>(process.state_of(&state_type<State>));
  if (state == nullptr) return process.refuse_system(letter, no_state_of_type<State>());
  answer_system<State>(process, letter, *state);
}

template <class State, class F>
struct ReplaceState {
  SystemRequest request;
  F function;

  static void run(SysProcess& process, Letter& letter) {
    auto* state = static_cast<State*>(process.state_of(&state_type<State>));
    if (state == nullptr) return process.refuse_system(letter, no_state_of_type<State>());
    std::optional<State> shown;
    std::exception_ptr thrown;
    {
      UserScope user(env());
      try {
        State next = letter.as<ReplaceState>().function(State(*state));
        shown.emplace(next);
        *state = std::move(next);
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    if (thrown != nullptr) {
      return process.refuse_system(letter,
                                   ExitReason::tagged("callback_failed", reason_of(thrown).term()));
    }
    answer_system<State>(process, letter, std::move(*shown));
  }
};

}  // namespace otp::internal

namespace otp::sys {

// ---- The state

/// A copy of the plain State of any behaviour that has one of that type; else the error
/// {no_state,State}.
template <class State>
Async<Result<State>> get_state_as(Target target, Options options = {}) {
  using namespace internal;
  require_shareable<State>();
  return ask_system<State>(target.pid(), options.timeout,
                           make_system_letter(SystemRequest{&run_get_state<State>}));
}
/// A copy of the state of a server that keeps its data in a public member `State state_`.
/// OTP: sys:get_state/1,2.
template <class S>
  requires internal::HasState<S>
Async<Result<typename S::State>> get_state(const Server<S>& server, Options options = {}) {
  return get_state_as<typename S::State>(server, options);
}
/// The state as text, at most 8 KiB, of any server: what its format_status writes, else its State
/// field by field. Without either the error is {no_state,Why}.
Async<Result<std::string>> get_state(Target target, Options options = {});

/// Runs `function`, which takes a State and returns one, in the server; what it returns is the new
/// state, and the result of this.
///
/// Takes:  function: runs in another process, so it captures values only.
/// Errors: {callback_failed,Reason} when it throws; the old state stays.
/// OTP:    sys:replace_state/2,3.
template <class State, class F>
  requires std::same_as<std::invoke_result_t<F&, State>, State>
Async<Result<State>> replace_state_as(Target target, F function, Options options = {}) {
  using namespace internal;
  require_shareable<State>();
  using Request = ReplaceState<State, F>;
  return ask_system<State>(target.pid(), options.timeout,
                           make_system_letter(Request{{&Request::run}, std::move(function)}));
}
template <class S, class F>
  requires internal::HasState<S>
Async<Result<typename S::State>> replace_state(const Server<S>& server, F function,
                                               Options options = {}) {
  return replace_state_as<typename S::State>(server, std::move(function), options);
}

// ---- Control

/// The server handles nothing but sys and the end of its parent until resume(): messages wait in
/// their order. OTP: sys:suspend/1,2.
Async<Result<void>> suspend(Target target, Options options = {});
/// OTP: sys:resume/1,2.
Async<Result<void>> resume(Target target, Options options = {});
/// Asks the server to end with `reason` as its own stop(reason) would; does not wait for the end.
/// OTP: sys:terminate/2,3.
Async<Result<void>> terminate(Target target, ExitReason reason, Options options = {});

/// OTP: sys:get_status/1,2.
Async<Result<Status>> get_status(Target target, Options options = {});

// ---- Watching

/// Starts counting from zero, or stops. OTP: sys:statistics(Name, true | false).
Async<Result<void>> statistics(Target target, bool on, Options options = {});
/// Error: no_statistics when they are off. OTP: sys:statistics(Name, get).
Async<Result<Statistics>> get_statistics(Target target, Options options = {});

/// Logs each event, at level notice in the domain `otp.sys`. OTP: sys:trace/2.
Async<Result<void>> trace(Target target, bool on, Options options = {});

/// Keeps the newest `events_max` events as text; zero: none. OTP: sys:log(Name, {true, N} | false).
Async<Result<void>> log(Target target, size_t events_max, Options options = {});
/// What log() has kept, the oldest first. OTP: sys:log(Name, get).
Async<Result<std::vector<std::string>>> get_log(Target target, Options options = {});

/// Calls `function` with each event, in the server's process, until it returns false, throws, or is
/// removed. The error `already_installed`: a function of that id is there. OTP: sys:install/2,3.
Async<Result<void>> install(Target target, std::string id, EventFunction function,
                            Options options = {});
/// OTP: sys:remove/2,3. No error when there is none of that id.
Async<Result<void>> remove(Target target, std::string id, Options options = {});

/// Switches statistics, trace, log and all installed functions off. OTP: sys:no_debug/1,2.
Async<Result<void>> no_debug(Target target, Options options = {});

}  // namespace otp::sys
