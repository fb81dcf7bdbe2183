#pragma once

#include <optional>
#include <utility>

#include "otp/base/exit_reason.h"
#include "otp/base/timeout.h"
#include "otp/runtime/letter.h"

/// What callbacks of a server may return: OTP's result tuples as types.
///
///     otp::Init init() { return otp::ok().then_continue(Load{}); }
///     otp::CallResult<int> handle_call(Take msg, otp::From<int> from) {
///       if (empty()) { waiting_.push_back(from); return otp::noreply(); }   // answered later
///       return otp::reply(pop());
///     }
///     otp::CastResult handle_cast(Close) { return otp::stop(otp::ExitReason::normal()); }
namespace otp {

namespace internal {

struct FreeLetter {
  void operator()(Letter* letter) const { free_letter(letter); }
};
using OwnedLetter = std::unique_ptr<Letter, FreeLetter>;

/// What follows a callback, whatever it was.
struct Step {
  enum class Kind : uint8_t { go_on, stop, ignore, error };
  Kind kind = Kind::go_on;
  ExitReason reason{};
  OwnedLetter next{};                     // for handle_continue, before any message
  std::optional<Timeout> idle_timeout{};  // handle_info(IdleTimeout) if no message comes
  bool hibernate = false;
};

/// Adds then_continue and timeout to a result type.
template <class Self>
struct WithStep {
  Step step{};
  /// Calls handle_continue(value) before the next message. OTP: {continue, Value}.
  template <class C>
  Self then_continue(C value) && {
    step.next.reset(make_letter<C>(LetterKind::message, plain_operation<C>, std::move(value)));
    return std::move(static_cast<Self&>(*this));
  }
  /// Calls handle_info(IdleTimeout) once if no message comes within `time`. OTP: Timeout.
  Self timeout(Timeout time) && {
    step.idle_timeout = time;
    return std::move(static_cast<Self&>(*this));
  }
  /// No message is expected for long: the server's `void hibernate()`, if it has one, is called to
  /// release what it can spare. OTP: hibernate. Differs: there is no heap of a process to be
  /// collected, so it is the server that knows what to release.
  Self hibernate() && {
    step.hibernate = true;
    return std::move(static_cast<Self&>(*this));
  }
};

}  // namespace internal

/// Ends the server with `reason`, after terminate(). See otp::stop.
struct Stop {
  ExitReason reason;
};

/// The result of handle_cast, handle_info and handle_continue when it is more than "go on".
class [[nodiscard]] CastResult : public internal::WithStep<CastResult> {
 public:
  CastResult() = default;
  CastResult(Stop stop) {
    step.kind = internal::Step::Kind::stop;
    step.reason = std::move(stop.reason);
  }
};

/// The result of handle_call when it is more than the reply.
template <class R>
class [[nodiscard]] CallResult : public internal::WithStep<CallResult<R>> {
 public:
  using Reply = R;
  CallResult(R value) : value(std::move(value)) {}
  CallResult(CastResult no_reply) { this->step = std::move(no_reply.step); }
  CallResult(Stop stop) : CallResult(CastResult(std::move(stop))) {}
  template <class T>
    requires(!std::is_same_v<T, R> && std::is_constructible_v<R, T>)
  CallResult(CallResult<T> other) : value(std::move(other.value)) {
    this->step = std::move(other.step);
  }
  std::optional<R> value{};
};
template <>
class [[nodiscard]] CallResult<void> : public internal::WithStep<CallResult<void>> {
 public:
  using Reply = void;
  CallResult() = default;
  CallResult(CastResult no_reply) : replied(false) { step = std::move(no_reply.step); }
  CallResult(Stop stop) : CallResult(CastResult(std::move(stop))) {}
  bool replied = true;
};

/// The result of init.
class [[nodiscard]] Init : public internal::WithStep<Init> {
 public:
  Init() = default;
  Init(Stop stop) {
    step.kind = internal::Step::Kind::stop;
    step.reason = std::move(stop.reason);
  }
  Init(internal::Step::Kind kind, ExitReason reason) {
    step.kind = kind;
    step.reason = std::move(reason);
  }
};

/// From init: the server is ready. OTP: {ok, State}.
inline Init ok() { return Init(); }
/// From init: the server is not wanted; the start returns `ignored` and the process ends `normal`.
inline Init ignore() { return Init(internal::Step::Kind::ignore, ExitReason::normal()); }
/// From init: the start fails with `reason`, and the process ends `normal`, so a linked starter
/// lives.
inline Init error(ExitReason reason) {
  return Init(internal::Step::Kind::error, std::move(reason));
}
/// From any callback: terminate(reason) runs, then the process ends with `reason`; a call being
/// handled is not answered, so its caller exits with `reason` too. OTP: {stop, Reason, State}.
inline Stop stop(ExitReason reason) { return Stop{std::move(reason)}; }
/// From handle_call: answers, then stops. OTP: {stop, Reason, Reply, State}.
template <class R>
CallResult<R> stop(ExitReason reason, R reply) {
  CallResult<R> result(std::move(reply));
  result.step.kind = internal::Step::Kind::stop;
  result.step.reason = std::move(reason);
  return result;
}
/// From handle_call: the caller goes on waiting, otp::reply(from, value) answers it later.
/// From others: go on. OTP: {noreply, State}.
inline CastResult noreply() { return CastResult(); }
/// From handle_call: the same as returning `value`, with room for then_continue and timeout.
template <class R>
CallResult<R> reply(R value) {
  return CallResult<R>(std::move(value));
}
/// From handle_call of a message whose Reply is void.
inline CallResult<void> reply() { return CallResult<void>(); }

}  // namespace otp
