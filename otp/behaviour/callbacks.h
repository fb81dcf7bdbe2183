#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include "otp/async/async.h"
#include "otp/base/bounded_writer.h"
#include "otp/behaviour/steps.h"
#include "otp/runtime/runtime.h"

/// Which callbacks a server class has. A callback counts only if it takes exactly the message type:
/// nothing is converted on the way to it.
namespace otp {

/// handle_info(IdleTimeout): no message came within the time that a callback had asked for.
struct IdleTimeout {};

/// handle_info(Response): the response to a request of send_request() that nobody waits for; look
/// into it with check_response(). Valid until the callback has ended.
struct Response {
  internal::Letter* letter = nullptr;
};

/// A message of any type, for a handle_info that takes what no other overload does.
class Message;

/// The address of a caller that still waits: answer it with otp::reply(from, value), from any
/// process.
template <class R>
struct From {
  Pid caller;
  Reference reference;
  Pid server;
};

/// The types of a list: `using Info = otp::Protocol<Tick, Tock>;`
template <class... M>
struct Protocol {};

namespace internal {

/// Converts to M and nothing else, so that overload resolution finds only a callback for exactly M.
template <class M>
struct Exactly {
  template <class T>
    requires std::same_as<T, M>
  operator T() const;
};

template <class S, class M>
concept CallHandler = requires(S& s) { s.handle_call(Exactly<M>()); };
template <class S, class M, class R>
concept CallHandlerWithFrom = requires(S& s) { s.handle_call(Exactly<M>(), Exactly<From<R>>()); };
template <class S, class M>
concept CastHandler = requires(S& s) { s.handle_cast(Exactly<M>()); };
template <class S, class M>
concept InfoHandler = requires(S& s) { s.handle_info(Exactly<M>()); };
template <class S, class C>
concept ContinueHandler = requires(S& s) { s.handle_continue(Exactly<C>()); };
template <class S>
concept HasInit = requires(S& s) { s.init(); };
template <class S>
concept HasTerminate = requires(S& s) { s.terminate(Exactly<ExitReason>()); };
template <class S>
concept HasArgs = requires { typename S::Args; };
/// The arguments of a server without Args.
struct NoArgs {};
template <class S>
struct ArgsOf {
  using Type = NoArgs;
};
template <HasArgs S>
struct ArgsOf<S> {
  using Type = typename S::Args;
};

template <class S>
concept HasHibernate = requires(S& s) { s.hibernate(); };
/// Prints what reports and sys::get_status show of the server, in place of its State.
template <class S>
concept FormatsStatus = requires(const S& s, BoundedWriter& out) { s.format_status(out); };

template <class S>
concept HasState = requires(S& s) {
  typename S::State;
  { s.state_ } -> std::same_as<typename S::State&>;
};

template <class M>
concept Request = requires { typename M::Reply; };
/// M's Reply; void if M is no request, which check_call() has then said already.
template <class M>
struct ReplyOf {
  using Type = void;
};
template <Request M>
struct ReplyOf<M> {
  using Type = typename M::Reply;
};

/// Async<T> -> T, T -> T.
template <class T>
struct Awaited {
  using Type = T;
  static constexpr bool waits = false;
};
template <class T>
struct Awaited<Async<T>> {
  using Type = T;
  static constexpr bool waits = true;
};

// The only argument of a member function that has no overloads; void when it cannot be told.
template <class F>
struct OnlyArgument {
  using Type = void;
};
template <class S, class R, class A>
struct OnlyArgument<R (S::*)(A)> {
  using Type = std::remove_cvref_t<A>;
};
template <class S, class R, class A>
struct OnlyArgument<R (S::*)(A) const> : OnlyArgument<R (S::*)(A)> {};
template <class S, class R, class A>
struct OnlyArgument<R (S::*)(A) noexcept> : OnlyArgument<R (S::*)(A)> {};

template <class S>
struct ContinueTypes {
  using Type = Protocol<>;
};
template <class S>
  requires requires { typename S::Continue; }
struct ContinueTypes<S> {
  using Type = typename S::Continue;
};
template <class S>
  requires(
      !requires { typename S::Continue; } && requires { &S::handle_continue; })
struct ContinueTypes<S> {
  using Type = Protocol<typename OnlyArgument<decltype(&S::handle_continue)>::Type>;
};

template <class S>
struct InfoTypes {
  using Type = Protocol<>;
};
template <class S>
  requires requires { typename S::Info; }
struct InfoTypes<S> {
  using Type = typename S::Info;
};
template <class S>
  requires(
      !requires { typename S::Info; } && requires { &S::handle_info; })
struct InfoTypes<S> {
  using Type = Protocol<typename OnlyArgument<decltype(&S::handle_info)>::Type>;
};

}  // namespace internal
}  // namespace otp
