#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "otp/base/enum_names.h"
#include "otp/base/term.h"
#include "otp/behaviour/callbacks.h"
#include "otp/behaviour/statem_events.h"

/// The states of a machine as its handlers see them: `In<State::open>` for an enumeration, the
/// alternative for a std::variant. A State of another type is one case.
namespace otp::internal {

template <class T>
inline constexpr bool kHasCases = false;
template <class... T>
inline constexpr bool kHasCases<std::variant<T...>> = true;

template <class State, class F, size_t... I>
bool with_enumerator(State state, F&& f, std::index_sequence<I...>) {
  return (
      (state == enum_names<State>[I].value ? (f(In<enum_names<State>[I].value>()), true) : false) ||
      ...);
}

/// Calls f with what a handler for `state` takes; false: `state` is no enumerator.
template <class State, class F>
bool with_case(const State& state, F&& f) {
  if constexpr (std::is_enum_v<State>) {
    return with_enumerator(state, f, std::make_index_sequence<enum_names<State>.size()>());
  } else if constexpr (kHasCases<State>) {
    if (state.valueless_by_exception()) return false;
    std::visit(f, state);
    return true;
  } else {
    f(state);
    return true;
  }
}

// Whether `Test::template holds<Case>` is true for a case of State.
template <class State, class Test>
struct AnyCase {
  static constexpr bool value = Test::template holds<const State&>;
};
template <class... T, class Test>
struct AnyCase<std::variant<T...>, Test> {
  static constexpr bool value = (Test::template holds<const T&> || ...);
};
template <class State, class Test>
  requires std::is_enum_v<State>
struct AnyCase<State, Test> {
  template <size_t... I>
  static consteval bool any(std::index_sequence<I...>) {
    return (Test::template holds<In<enum_names<State>[I].value>> || ...);
  }
  static constexpr bool value = any(std::make_index_sequence<enum_names<State>.size()>());
};

/// S handles event E in the case Case of its State.
template <class S, class Case, class E>
concept EventHandler = requires(S& s, Case in) { s.handle_event(in, Exactly<E>()); };
/// S has an enter callback for the case Case.
template <class S, class Case>
concept EnterHandler =
    requires(S& s, Case in) { s.handle_enter(in, Exactly<typename S::State>()); };

template <class S, class E>
struct HandlesEvent {
  template <class Case>
  static constexpr bool holds = EventHandler<S, Case, E>;
};
/// S handles event E in some state.
template <class S, class E>
inline constexpr bool kHandled = AnyCase<typename S::State, HandlesEvent<S, E>>::value;

/// For reports.
template <class State>
Term state_term(const State& state) {
  if constexpr (std::is_enum_v<State>) {
    std::string_view name = enum_name(state);
    if (name.empty()) return Term(static_cast<int64_t>(state));
    return Term::atom(std::string(name));
  } else if constexpr (kHasCases<State>) {
    Term term;
    with_case(state, [&](const auto& in) {
      term = Term::atom(std::string(type_name<std::remove_cvref_t<decltype(in)>>()));
    });
    return term;
  } else {
    return Term::atom(std::string(type_name<State>()));
  }
}

template <class State>
bool same_state(const State& a, const State& b) {
  static_assert(std::equality_comparable<State>,
                "a machine's State needs operator== (for a variant: each alternative), as going to "
                "an equal state is no state change");
  return a == b;
}

}  // namespace otp::internal
