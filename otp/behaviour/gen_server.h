#pragma once

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "otp/async/async.h"
#include "otp/base/result.h"
#include "otp/base/shareable.h"
#include "otp/behaviour/server.h"
#include "otp/behaviour/server_process.h"
#include "otp/behaviour/steps.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system.h"

/// GenServer: a process that owns a plain object and answers messages one at a time.
///
///     struct Increment { using Reply = int64_t; int64_t by = 1; };   // a call: it has a Reply
///     struct Reset {};                                               // a cast
///
///     class Counter {
///      public:
///       struct Args { int64_t start = 0; };
///       explicit Counter(Args args) : count_(args.start) {}
///       int64_t handle_call(Increment msg) { return count_ += msg.by; }
///       void handle_cast(Reset) { count_ = 0; }
///      private:
///       int64_t count_;
///     };
///
///     auto counter = (co_await otp::start_link<Counter>({.start = 40})).or_exit();
///     int64_t n = co_await otp::call(counter, Increment{.by = 2});    // 42
///
/// The overload set of handle_call, handle_cast and handle_info is the protocol: the compiler
/// checks each send against it. Callbacks, all but one optional:
///   constructor(Args)                     OTP's init/1, in the process, before start returns
///   Init init()                           right after it, when there is more to say (steps.h)
///   Reply handle_call(M) / (M, From<Reply>)
///   void handle_cast(M)                   M has no Reply
///   void handle_info(Down), (ExitMessage), (IdleTimeout), (M)     M by otp::send, timers
///   void handle_continue(C)               after then_continue(C{})
///   void terminate(ExitReason)            before an end that the server takes part in
///   void format_status(BoundedWriter&) const   what reports and sys show of its data
///   void hibernate()                      releases what it can spare, after hibernate()
/// Each may return an otp::Async of its result and wait in it; while it waits the process handles
/// no other message, as in OTP. Instead of Reply or void: CallResult<Reply>, CastResult (steps.h).
/// An overloaded handle_info that takes messages of untyped senders lists them: `using Info =
/// otp::Protocol<Tick, Tock>;`; an overloaded handle_continue likewise: `using Continue = ...`.
///
/// Args: a plain struct, which a configuration fills by field name. What it may leave out has a
/// default; what it must say is an otp::Required<T> (otp/config/required.h), and another server an
/// otp::Required<otp::Name<S>>: then the check sees that there is such a child.
///
/// When it ends: a callback that throws ends the server with {{Type,What},Stack}, after terminate.
/// Then a ServerReport and a CrashReport are logged (report.h).
///
/// State: a server may keep its data in one plain struct, as a public member `State state_`. Then
/// reports and sys (sys.h) show it field by field, sys::get_state copies it, and with `static
/// constexpr bool rollback_on_exception = true` terminate sees it as before the callback that threw
/// (as in OTP; it costs a copy a message). Else terminate sees what that callback left.
/// OTP: gen_server. Not for code that needs no state of its own or no serialisation:
/// call a function.
namespace otp {

/// How to start a server.
struct StartOptions {
  std::string name{};  ///< registered before init runs; empty: none
  Timeout timeout =
      infinity;  ///< for init; then the process is killed and the start fails with `timeout`
  MailboxLimit mailbox{};        ///< how many messages may wait; none: any number
  bool drop_expired = false;     ///< a call whose caller has given up is dropped, not handled
  std::optional<ViaName> via{};  ///< a name in a registry, likewise before init runs
};

/// How to call. Default timeout as in OTP.
struct CallOptions {
  Timeout timeout = std::chrono::seconds(5);
};

namespace internal {

template <class S, class M>
inline const Operation call_operation{&message_type<M>, &server_type<S>,
                                      &ServerProcess<S>::template invoke_call<M>};
template <class S, class M>
inline const Operation cast_operation{&message_type<M>, &server_type<S>,
                                      &ServerProcess<S>::template invoke_cast<M>};
template <class S, class M>
inline const Operation info_operation{&message_type<M>, &server_type<S>,
                                      &ServerProcess<S>::template invoke_info<M>};

template <class R, class Returned>
consteval void check_call_result() {
  using T = typename Awaited<Returned>::Type;
  static_assert(std::is_same_v<T, R> || kIsCallResult<R, T>,
                "handle_call must return the message's Reply or otp::CallResult<Reply>, exactly, "
                "or an otp::Async of one of them");
}
template <class Returned>
consteval void check_cast_result() {
  using T = typename Awaited<Returned>::Type;
  static_assert(kIsCastResult<T>,
                "handle_cast and handle_info must return void or otp::CastResult, or an "
                "otp::Async of one of them");
}

// Everything a send can be wrong about is said here, once: the code behind it is left out then, so
// that the reason is the whole diagnostic. Other behaviours specialise it.
template <class S>
struct ChecksOf {
  template <class M>
  static consteval void call() {
    static_assert(Request<M>, "this message has no Reply: it is a cast, use otp::cast");
    if constexpr (Request<M>) {
      using R = typename M::Reply;
      static_assert(CallHandler<S, M> || CallHandlerWithFrom<S, M, R>,
                    "the server has no public handle_call that takes exactly this message");
      if constexpr (CallHandler<S, M>) {
        check_call_result<R, decltype(std::declval<S&>().handle_call(Exactly<M>()))>();
      } else if constexpr (CallHandlerWithFrom<S, M, R>) {
        using From = Exactly<From<R>>;
        check_call_result<R, decltype(std::declval<S&>().handle_call(Exactly<M>(), From()))>();
      }
      require_shareable<M>();
      if constexpr (!std::is_void_v<typename M::Reply>) require_shareable<typename M::Reply>();
    }
  }
  template <class M>
  static consteval void cast() {
    static_assert(!Request<M>, "this message has a Reply: it is a call, use otp::call");
    static_assert(Request<M> || CastHandler<S, M>,
                  "the server has no public handle_cast that takes exactly this message");
    if constexpr (CastHandler<S, M>) {
      check_cast_result<decltype(std::declval<S&>().handle_cast(Exactly<M>()))>();
    }
    require_shareable<M>();
  }
  template <class M>
  static consteval void info() {
    static_assert(InfoHandler<S, M>,
                  "the server has no public handle_info that takes exactly this message");
    if constexpr (InfoHandler<S, M>) {
      check_cast_result<decltype(std::declval<S&>().handle_info(Exactly<M>()))>();
    }
    require_shareable<M>();
  }
};

void deliver_reply(Pid caller, Reference reference, Pid server, Letter* letter);

/// gen_server, unless S names its behaviour.
template <class S>
constexpr const char* behaviour_of() {
  if constexpr (requires { S::Behaviour::kName; }) {
    return S::Behaviour::kName;
  } else {
    return "gen_server";
  }
}

/// A call under way: what does not depend on the types.
class CallBase {
 public:
  CallBase(const CallBase&) = delete;
  CallBase& operator=(const CallBase&) = delete;

 protected:
  CallBase(Pid target, Timeout timeout, Letter* request)
      : target_(target), timeout_(timeout), request_(request) {}
  ~CallBase() {
    if (request_) free_letter(request_);
  }
  bool ready() noexcept;
  void suspend();
  /// The reply, or null and the reason in `error`.
  Letter* finish(ExitReason& error);
  /// Throws {Error,{Behaviour,call,[Target,Message,Timeout]}}.
  [[noreturn]] void throw_described(ExitReason error, const char* behaviour,
                                    std::string_view message);

  const Pid target_;
  const Timeout timeout_;
  Letter* request_;
  uint64_t reference_ = 0;
  bool self_call_ = false;
};

template <class R>
R take_reply_value(Process& process, Letter* reply) {
  if constexpr (std::is_void_v<R>) {
    process.consume(reply);
  } else {
    R value = std::move(reply->as<R>());
    process.consume(reply);
    return value;
  }
}

/// Room for the deadline in front of the payload, as calls carry it.
template <class M>
Letter* make_call_letter(const Operation& operation, M message) {
  static_assert(alignof(M) <= 8, "a message must not need an alignment above 8 bytes");
  Letter* letter = allocate_letter(sizeof(M) + 8);
  letter->kind = LetterKind::call;
  letter->operation = &operation;
  letter->set_deadline(TimerWheel::kNever);
  new (letter->payload()) M(std::move(message));
  if constexpr (!std::is_trivially_destructible_v<M>) letter->flags |= kPayload;
  return letter;
}

template <class S, class M>
class [[nodiscard]] CallAwaiter : public CallBase {
 public:
  using R = typename ReplyOf<M>::Type;
  CallAwaiter(Server<S> server, M message, CallOptions options)
      : CallBase(server.pid(), options.timeout,
                 make_call_letter<M>(call_operation<S, M>, std::move(message))) {}
  bool await_ready() noexcept { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  R await_resume() {
    ExitReason error;
    Letter* reply = finish(error);
    if (reply == nullptr) throw_described(std::move(error), behaviour_of<S>(), type_name<M>());
    return take_reply_value<R>(self_process(), reply);
  }
};

template <class S, class M>
class [[nodiscard]] TryCallAwaiter : public CallBase {
 public:
  using R = typename ReplyOf<M>::Type;
  TryCallAwaiter(Server<S> server, M message, CallOptions options)
      : CallBase(server.pid(), options.timeout,
                 make_call_letter<M>(call_operation<S, M>, std::move(message))) {}
  bool await_ready() noexcept { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  Result<R> await_resume() {
    ExitReason error;
    Letter* reply = finish(error);
    if (reply == nullptr) return error;
    if constexpr (std::is_void_v<R>) {
      self_process().consume(reply);
      return {};
    } else {
      return take_reply_value<R>(self_process(), reply);
    }
  }
};

}  // namespace internal

// ---- Calling

/// What call<S>(server, M) returns, to be awaited: the return type of a function whose users need
/// not see what the call needs of S.
template <class S, class M>
using PendingCall = internal::CallAwaiter<S, M>;

/// Sends `message` to `server` and waits for its reply.
///
/// The calling process waits, no thread does: its mailbox keeps filling, exit signals still get
/// through.
///
/// Takes:   options.timeout: default 5 s; otp::infinity waits for ever.
/// Returns: co_await gives M::Reply. A reply that comes after the timeout is dropped, never seen.
/// Threads: inside a process; threads outside use otp::call(system, ...).
/// Errors:  throws Exit with {Reason,{gen_server,call,[Server,Message,Timeout]}}, Reason being
///          `timeout`, `noproc`, `calling_self`, or the server's exit reason if it ends first.
/// OTP:     gen_server:call/2,3 as since OTP 24. Differs: the message's type checks the reply's.
template <class S, class M>
internal::CallAwaiter<S, M> call(Server<S> server, M message, CallOptions options = {}) {
  internal::ChecksOf<S>::template call<M>();
  return internal::CallAwaiter<S, M>(std::move(server), std::move(message), options);
}
template <class S, class M>
internal::CallAwaiter<S, M> call(const Name<S>& name, M message, CallOptions options = {}) {
  return call(Server<S>(name), std::move(message), options);
}

/// call() for callers that plan for failure: a Result with the reply, or with the plain reason.
template <class S, class M>
internal::TryCallAwaiter<S, M> try_call(Server<S> server, M message, CallOptions options = {}) {
  internal::ChecksOf<S>::template call<M>();
  return internal::TryCallAwaiter<S, M>(std::move(server), std::move(message), options);
}
template <class S, class M>
internal::TryCallAwaiter<S, M> try_call(const Name<S>& name, M message, CallOptions options = {}) {
  return try_call(Server<S>(name), std::move(message), options);
}

/// Sends `message` and does not wait. A server that is gone drops it. See otp::Sent for loops.
/// OTP: gen_server:cast/2.
template <class S, class M>
Sent cast(const Server<S>& server, M message) {
  using namespace internal;
  ChecksOf<S>::template cast<M>();
  LibraryScope scope(env());
  deliver_message(server.pid(),
                  make_letter<M>(LetterKind::cast, cast_operation<S, M>, std::move(message)));
  return Sent();
}
template <class S, class M>
Sent cast(const Name<S>& name, M message) {
  return cast(Server<S>(name), std::move(message));
}

/// cast() for senders that want to know whether the server can take more: one that is gone is
/// `noproc`, one whose mailbox is full {mailbox_full,Pid}, and the message is not sent.
///
/// The receiver's own count decides in the end: among many senders at the same moment some may be
/// told yes, and theirs is dropped and counted. See MailboxLimit. Ours.
template <class S, class M>
Result<void> try_cast(const Server<S>& server, M message) {
  using namespace internal;
  ChecksOf<S>::template cast<M>();
  LibraryScope scope(env());
  const Pid target = server.pid();
  if (auto why = why_not_taken(target)) return *why;
  deliver_message(target,
                  make_letter<M>(LetterKind::cast, cast_operation<S, M>, std::move(message)));
  return {};
}
template <class S, class M>
Result<void> try_cast(const Name<S>& name, M message) {
  return try_cast(Server<S>(name), std::move(message));
}

/// Sends a plain message that handle_info takes; checked like a cast. OTP: Server ! Message.
template <class S, class M>
Sent send(const Server<S>& server, M message) {
  using namespace internal;
  ChecksOf<S>::template info<M>();
  LibraryScope scope(env());
  deliver_message(server.pid(),
                  make_letter<M>(LetterKind::message, info_operation<S, M>, std::move(message)));
  return Sent();
}

/// Answers a caller whose handle_call returned noreply(). Any process may, once; more is dropped.
/// OTP: gen_server:reply/2.
template <class R>
void reply(const From<R>& from, std::type_identity_t<R> value) {
  using namespace internal;
  LibraryScope scope(env());
  Letter* letter = make_letter<R>(LetterKind::reply, plain_operation<R>, std::move(value));
  deliver_reply(from.caller, from.reference, from.server, letter);
}
inline void reply(const From<void>& from) {
  using namespace internal;
  LibraryScope scope(env());
  deliver_reply(from.caller, from.reference, from.server, make_signal(LetterKind::reply));
}

/// When the caller of the call being handled gives up; nullopt: never, or no call is being handled.
std::optional<Duration> remaining();

// ---- Starting and stopping

namespace internal {

struct StartTies {
  bool link = false;
  bool monitor = false;
};
struct Started {
  Pid pid;
  Reference monitor{};
  Term info{};  // what a child's own start function adds
};
/// A start under way: spawns the process and waits for its acknowledgement.
using MakeServer = std::unique_ptr<Process> (*)(std::string name, StartAck ack, void* arguments);
Async<Result<Started>> start_server(MakeServer make, void* arguments, StartOptions options,
                                    StartTies ties);

template <class S>
std::unique_ptr<Process> make_server(std::string name, StartAck ack, void* arguments) {
  using Arguments = typename ArgsOf<S>::Type;
  return std::make_unique<ServerProcess<S>>(std::move(name), ack,
                                            std::move(*static_cast<Arguments*>(arguments)));
}
template <class S>
Async<Result<Server<S>>> start_typed(typename ArgsOf<S>::Type arguments, StartOptions options,
                                     StartTies ties) {
  auto started = co_await start_server(&make_server<S>, &arguments, std::move(options), ties);
  if (started.ok()) co_return Server<S>(started.value().pid);
  if (started.ignored()) co_return Ignored();
  co_return started.error();
}

}  // namespace internal

/// Starts a server linked to the calling process and waits for its init.
///
/// Returns: co_await gives Result<Server<S>>: the server once its init is done; `ignored`; or the
///          reason: what init gave or threw, {already_started,Pid} when the name is taken,
///          `timeout`.
/// Errors:  a failed init that is no error(...) or ignore() ends the process with its reason, and
///          with it a caller that does not trap exits.
/// OTP:     gen_server:start_link/3,4.
template <class S>
Async<Result<Server<S>>> start_link(typename internal::ArgsOf<S>::Type arguments = {},
                                    StartOptions options = {}) {
  return internal::start_typed<S>(std::move(arguments), std::move(options), {.link = true});
}
/// Starts a server without a link. OTP: gen_server:start/3,4.
template <class S>
Async<Result<Server<S>>> start(typename internal::ArgsOf<S>::Type arguments = {},
                               StartOptions options = {}) {
  return internal::start_typed<S>(std::move(arguments), std::move(options), {});
}

/// A server that was just started, and the monitor that watches it from the start.
template <class S>
struct Monitored {
  Server<S> server;
  Reference monitor;
};
/// Starts a server without a link and monitors it, in one step. A start that fails leaves no
/// monitor and no Down. OTP: gen_server:start_monitor/3,4.
template <class S>
Async<Result<Monitored<S>>> start_monitor(typename internal::ArgsOf<S>::Type arguments = {},
                                          StartOptions options = {}) {
  auto started = co_await internal::start_server(&internal::make_server<S>, &arguments,
                                                 std::move(options), {.monitor = true});
  if (started.ok()) {
    co_return Monitored<S>{Server<S>(started.value().pid), started.value().monitor};
  }
  if (started.ignored()) co_return Ignored();
  co_return started.error();
}

/// Asks a server to end with `reason`: what is queued before is handled first, terminate runs.
/// Returns when the process is gone and its name is free. Errors: throws Exit `noproc`, `timeout`
/// (the server goes on stopping), or the reason it ended with if that is another one. OTP:
/// gen_server:stop/1,3.
Async<void> stop(Pid server, ExitReason reason = {}, Timeout timeout = infinity);
template <class S>
Async<void> stop(const Server<S>& server, ExitReason reason = {}, Timeout timeout = infinity) {
  return stop(server.pid(), std::move(reason), timeout);
}

// ---- From threads outside

/// otp::call for a thread outside of processes: blocks that thread.
template <class S, class M>
typename M::Reply call(System& system, Server<S> server, M message, CallOptions options = {}) {
  internal::ChecksOf<S>::template call<M>();
  return system.run(
      [](Server<S> to, M m, CallOptions o) -> Async<typename M::Reply> {
        co_return co_await call(std::move(to), std::move(m), o);
      },
      std::move(server), std::move(message), options);
}
/// otp::cast for a thread outside of processes.
template <class S, class M>
void cast(System& system, const Server<S>& server, M message) {
  internal::OutsideScope outside(system.impl());
  (void)cast(server, std::move(message));
}
/// Starts a server from a thread outside and waits for its init; it has no parent.
template <class S>
Result<Server<S>> start(System& system, typename internal::ArgsOf<S>::Type arguments = {},
                        StartOptions options = {}) {
  return system.run(
      [](typename internal::ArgsOf<S>::Type a, StartOptions o) -> Async<Result<Server<S>>> {
        co_return co_await start<S>(std::move(a), std::move(o));
      },
      std::move(arguments), std::move(options));
}

}  // namespace otp
