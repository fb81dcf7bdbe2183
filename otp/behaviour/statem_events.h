#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "otp/base/term.h"
#include "otp/base/timeout.h"
#include "otp/behaviour/callbacks.h"
#include "otp/runtime/timer_wheel.h"

/// The events of a state machine: each type says how the event came. See gen_statem.h.
namespace otp {

/// One state of a machine whose State is an enumeration: the first parameter of a handler that is
/// for this state alone. It converts to the enumeration, so a handler that takes a plain State is
/// for every state that has none of its own.
template <auto kState>
struct In {
  static_assert(std::is_enum_v<decltype(kState)>, "otp::In takes an enumerator of State");
  constexpr operator decltype(kState)() const { return kState; }
};

/// A call: somebody waits for M::Reply. Answer it with the action reply(call, value), in this
/// transition or a later one (keep `from` for that). OTP: {call, From}.
template <class M>
struct Call {
  using Message = M;
  M message;
  From<typename M::Reply> from{};
  /// Internal: when the caller gives up.
  int64_t deadline = internal::TimerWheel::kNever;

  M* operator->() { return &message; }
  const M* operator->() const { return &message; }
};

/// What the events that are not calls have in common: the content.
template <class M>
struct EventContent {
  using Message = M;
  M message;
  explicit EventContent(M content) : message(std::move(content)) {}

  M* operator->() { return &message; }
  const M* operator->() const { return &message; }
};

/// A message by otp::cast. OTP: cast.
template <class M>
struct Cast : EventContent<M> {
  using EventContent<M>::EventContent;
};
/// A message by otp::send, a timer of otp::send_after, a Down, an ExitMessage. OTP: info.
template <class M>
struct Info : EventContent<M> {
  using EventContent<M>::EventContent;
};
/// An event that only the machine itself can make, by next_event. OTP: internal.
template <class M>
struct Internal : EventContent<M> {
  using EventContent<M>::EventContent;
};

/// No event came for the time that a transition asked for. OTP: timeout.
template <class C>
struct EventTimeout : EventContent<C> {
  using EventContent<C>::EventContent;
};
/// The state did not change for the time that a transition asked for. OTP: state_timeout.
template <class C>
struct StateTimeout : EventContent<C> {
  using EventContent<C>::EventContent;
};

/// Which of a machine's generic timeouts: any term; a string literal is an atom and costs nothing.
class TimeoutName {
 public:
  template <size_t N>
  TimeoutName(const char (&literal)[N]) : term_(Term::literal(literal)) {}
  TimeoutName(std::string atom) : term_(Term::atom(std::move(atom))) {}
  TimeoutName(Term term) : term_(std::move(term)) {}
  TimeoutName(int64_t number) : term_(number) {}
  TimeoutName(int number) : term_(number) {}
  const Term& term() const { return term_; }
  friend bool operator==(const TimeoutName&, const TimeoutName&) = default;

 private:
  Term term_;
};

/// A generic timeout: it has a name, and neither events nor state changes stop it.
/// OTP: {timeout, Name}.
template <class C>
struct NamedTimeout {
  using Message = C;
  TimeoutName name;  // first: the machine finds it without knowing C
  C message;

  C* operator->() { return &message; }
  const C* operator->() const { return &message; }
};

template <class M>
Cast(M) -> Cast<M>;
template <class M>
Info(M) -> Info<M>;
template <class M>
Internal(M) -> Internal<M>;
template <class M>
EventTimeout(M) -> EventTimeout<M>;
template <class M>
StateTimeout(M) -> StateTimeout<M>;
template <class M>
NamedTimeout(TimeoutName, M) -> NamedTimeout<M>;

/// The System's monotonic clock: virtual in a Simulator. OTP: erlang:monotonic_time/0.
/// Threads: inside a process.
Duration monotonic_time();

/// When a timeout fires: after a duration, never (otp::infinity: a running one is cancelled), or at
/// a moment of monotonic_time().
class TimeoutAt {
 public:
  template <class Rep, class Period>
  TimeoutAt(std::chrono::duration<Rep, Period> after) : TimeoutAt(Timeout(after)) {}
  TimeoutAt(Timeout after) : nanoseconds_(after.nanoseconds()), never_(after.is_infinite()) {}
  static TimeoutAt moment(Duration when) {
    TimeoutAt at{Timeout(when)};
    at.absolute_ = true;
    return at;
  }
  bool never() const { return never_; }
  bool absolute() const { return absolute_; }
  int64_t nanoseconds() const { return nanoseconds_; }

 private:
  int64_t nanoseconds_;
  bool never_;
  bool absolute_ = false;
};
/// OTP: the option {abs, true}.
inline TimeoutAt at(Duration moment) { return TimeoutAt::moment(moment); }

namespace internal {

template <class E>
inline constexpr bool kIsEvent = false;
template <class M>
inline constexpr bool kIsEvent<Call<M>> = true;
template <class M>
inline constexpr bool kIsEvent<Cast<M>> = true;
template <class M>
inline constexpr bool kIsEvent<Info<M>> = true;
template <class M>
inline constexpr bool kIsEvent<Internal<M>> = true;
template <class M>
inline constexpr bool kIsEvent<EventTimeout<M>> = true;
template <class M>
inline constexpr bool kIsEvent<StateTimeout<M>> = true;
template <class M>
inline constexpr bool kIsEvent<NamedTimeout<M>> = true;

/// OTP's word for the type of an event.
template <class E>
constexpr const char* event_type() {
  using M = typename E::Message;
  if constexpr (std::is_same_v<E, Cast<M>>) return "cast";
  if constexpr (std::is_same_v<E, Info<M>>) return "info";
  if constexpr (std::is_same_v<E, Internal<M>>) return "internal";
  if constexpr (std::is_same_v<E, StateTimeout<M>>) return "state_timeout";
  if constexpr (std::is_same_v<E, EventTimeout<M>> || std::is_same_v<E, NamedTimeout<M>>) {
    return "timeout";
  }
  return "call";
}

template <class E>
inline constexpr bool kIsCall = false;
template <class M>
inline constexpr bool kIsCall<Call<M>> = true;

}  // namespace internal
}  // namespace otp
