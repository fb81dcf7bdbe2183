#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "otp/base/exit_reason.h"
#include "otp/behaviour/callbacks.h"
#include "otp/behaviour/statem_events.h"
#include "otp/behaviour/statem_states.h"
#include "otp/behaviour/steps.h"
#include "otp/runtime/letter.h"

/// What the callbacks of a state machine return: where it goes, and what it does on the way.
///
///     return otp::next_state(State::open).reply(call, true).state_timeout(10s, Relock{});
///     return otp::keep_state().postpone(std::move(call));
///     return otp::stop(otp::ExitReason::normal());
///
/// Actions, in any number; those of one kind act in the order written:
///   reply(call, value), reply(from, value)     answers a caller, of this call or an earlier one
///   postpone(std::move(event))                 this event comes again after the next state change
///   next_event(Internal(C{})), any event type  comes before everything that waits
///   state_timeout(T, C{})                      unless the state changes within T
///   event_timeout(T, C{})                      unless an event comes within T
///   timeout(name, T, C{})                      after T, whatever happens
///   update_state_timeout(C{}) ...              a running one gets another content; none runs: now
///   cancel_state_timeout() ...
/// T is a duration, otp::infinity (never: a running one stops), or otp::at(moment). Setting a
/// timeout replaces the running one of its kind and name. A content that no handler of the machine
/// takes does not compile.
namespace otp {

template <class S>
class Transition;

namespace internal {

enum class ActionKind : uint8_t {
  reply,
  postpone,
  next_event,
  event_timeout,
  state_timeout,
  named_timeout,
};
enum ActionFlags : uint8_t {
  kActionEvent = 1,     // the payload is an event of the machine: `operation` says which
  kActionUpdate = 2,    // of a timeout: only its content
  kActionCancel = 4,    // of a timeout
  kActionAbsolute = 8,  // of a timeout: the time is a moment
};

/// Letters of one owner, in order.
class LetterQueue {
 public:
  LetterQueue() = default;
  LetterQueue(LetterQueue&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}
  LetterQueue& operator=(LetterQueue&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    return *this;
  }
  ~LetterQueue() { clear(); }

  bool empty() const { return first_ == nullptr; }
  template <class F>
  void for_each(F f) const {
    for (Letter* each = first_; each != nullptr; each = each->next.load(relaxed)) f(*each);
  }
  void push_back(Letter* letter) {
    letter->next.store(nullptr, relaxed);
    if (first_ == nullptr) {
      first_ = letter;
    } else {
      last_->next.store(letter, relaxed);
    }
    last_ = letter;
  }
  Letter* pop_front() {
    Letter* letter = first_;
    if (letter == nullptr) return nullptr;
    first_ = letter->next.load(relaxed);
    letter->next.store(nullptr, relaxed);  // whoever delivers it wants it alone
    return letter;
  }
  /// Puts all of `others` in front, in their order.
  void prepend(LetterQueue& others) {
    if (others.empty()) return;
    others.last_->next.store(first_, relaxed);
    if (first_ == nullptr) last_ = others.last_;
    first_ = std::exchange(others.first_, nullptr);
  }
  void clear() noexcept {
    while (Letter* letter = pop_front()) free_letter(letter);
  }

 private:
  Letter* first_ = nullptr;
  Letter* last_ = nullptr;  // meaningless while first_ is null
};

/// Actions as letters, so that an action costs no more than the letter it becomes. Until the
/// machine takes them, `generation` holds the kind and the flags, and `sender` the time of a
/// timeout or the caller of a reply.
class ActionList {
 public:
  static ActionKind kind_of(const Letter& letter) {
    return static_cast<ActionKind>(letter.generation & 0xFF);
  }
  static uint32_t flags_of(const Letter& letter) { return letter.generation >> 8; }

  template <class E>
  void add_event(ActionKind kind, E event, uint32_t flags = 0) {
    add(make_letter<E>(LetterKind::message, plain_operation<E>, std::move(event)), kind,
        flags | kActionEvent);
  }
  template <class E>
  void add_timeout(ActionKind kind, TimeoutAt at, E event,
                   const Operation* operation = &plain_operation<E>) {
    Letter* letter = make_letter<E>(LetterKind::message, *operation, std::move(event));
    letter->sender = static_cast<uint64_t>(at.nanoseconds());
    uint32_t flags = kActionEvent;
    if (at.never()) flags |= kActionCancel;
    if (at.absolute()) flags |= kActionAbsolute;
    add(letter, kind, flags);
  }
  void add_cancel(ActionKind kind) { add(make_signal(LetterKind::message), kind, kActionCancel); }
  void add_cancel(TimeoutName name) {
    add(make_letter<TimeoutName>(LetterKind::message, plain_operation<TimeoutName>,
                                 std::move(name)),
        ActionKind::named_timeout, kActionCancel);
  }
  template <class R>
  void add_reply(const From<R>& from, R value) {
    add_reply(from.caller, from.reference,
              make_letter<R>(LetterKind::reply, plain_operation<R>, std::move(value)));
  }
  void add_reply(Pid caller, Reference reference, Letter* letter) {
    letter->sender = caller.id;
    letter->reference = reference.id;
    add(letter, ActionKind::reply, 0);
  }
  /// The operations of the events, in their order.
  void address(const Operation* const* operations) {
    letters.for_each([&](Letter& letter) {
      if (flags_of(letter) & kActionEvent) letter.operation = *operations++;
    });
  }

  LetterQueue letters;

 private:
  void add(Letter* letter, ActionKind kind, uint32_t flags) {
    letter->generation = static_cast<uint32_t>(kind) | (flags << 8);
    letters.push_back(letter);
  }
};

/// The actions that need to know nothing of the machine.
template <class Self>
class CommonActions {
 public:
  template <class R>
  Self& reply(const From<R>& from, std::type_identity_t<R> value) & {
    actions_.add_reply(from, std::move(value));
    return self();
  }
  Self& reply(const From<void>& from) & {
    actions_.add_reply(from.caller, from.reference, make_signal(LetterKind::reply));
    return self();
  }
  template <class M>
  Self& reply(const Call<M>& call, std::type_identity_t<typename M::Reply> value) & {
    return reply(call.from, std::move(value));
  }
  template <class M>
  Self& reply(const Call<M>& call) & {
    static_assert(std::is_void_v<typename M::Reply>, "reply needs a value: this call has a Reply");
    return reply(call.from);
  }
  template <class... A>
  Self&& reply(A&&... a) && {
    return std::move(reply(std::forward<A>(a)...));
  }

 protected:
  Self& self() { return static_cast<Self&>(*this); }
  ActionList actions_;
};

template <class Self>
class TimeoutCancels : public CommonActions<Self> {
 public:
  Self& cancel_event_timeout() & { return cancel(ActionKind::event_timeout); }
  Self&& cancel_event_timeout() && { return std::move(cancel(ActionKind::event_timeout)); }
  Self& cancel_state_timeout() & { return cancel(ActionKind::state_timeout); }
  Self&& cancel_state_timeout() && { return std::move(cancel(ActionKind::state_timeout)); }
  Self& cancel_timeout(TimeoutName name) & {
    this->actions_.add_cancel(std::move(name));
    return this->self();
  }
  Self&& cancel_timeout(TimeoutName name) && { return std::move(cancel_timeout(std::move(name))); }

 private:
  Self& cancel(ActionKind kind) {
    this->actions_.add_cancel(kind);
    return this->self();
  }
};

struct KeepState {};
struct RepeatState {};

// How an event got into a plan: some callbacks must not postpone or insert.
template <class E>
struct Postponed {
  using Event = E;
};
template <class E>
struct Inserted {
  using Event = E;
};
template <class E>
struct Timed {
  using Event = E;
};
template <class Item>
inline constexpr bool kIsPostponed = false;
template <class E>
inline constexpr bool kIsPostponed<Postponed<E>> = true;
template <class Item>
inline constexpr bool kIsTimed = false;
template <class E>
inline constexpr bool kIsTimed<Timed<E>> = true;

/// What next_state, keep_state and repeat_state return: a target and actions, not yet of a machine.
/// Its type lists the events in it, so that the machine can check them.
template <class Target, class... Item>
class [[nodiscard]] Plan : public TimeoutCancels<Plan<Target, Item...>> {
 public:
  explicit Plan(Target target, ActionList actions = {}) : target_(std::move(target)) {
    this->actions_ = std::move(actions);
  }

  /// Keeps the event that is being handled for after the next state change: give it back.
  template <class E>
    requires kIsEvent<E>
  auto postpone(E event) && {
    static_assert((!kIsPostponed<Item> && ...), "only the event being handled can be postponed");
    return std::move(*this).template with<Postponed<E>>(ActionKind::postpone, std::move(event));
  }
  template <class E>
  auto next_event(E event) && {
    static_assert(
        kIsEvent<E>,
        "next_event takes an event with its type: otp::Internal(message), otp::Cast(...)");
    return std::move(*this).template with<Inserted<E>>(ActionKind::next_event, std::move(event));
  }
  template <class C>
  auto event_timeout(TimeoutAt at, C content) && {
    return std::move(*this).timed(ActionKind::event_timeout, at,
                                  EventTimeout<C>(std::move(content)));
  }
  template <class C>
  auto state_timeout(TimeoutAt at, C content) && {
    return std::move(*this).timed(ActionKind::state_timeout, at,
                                  StateTimeout<C>(std::move(content)));
  }
  template <class C>
  auto timeout(TimeoutName name, TimeoutAt at, C content) && {
    return std::move(*this).timed(ActionKind::named_timeout, at,
                                  NamedTimeout<C>{std::move(name), std::move(content)});
  }
  template <class C>
  auto update_event_timeout(C content) && {
    using E = EventTimeout<C>;
    return std::move(*this).template with<Timed<E>>(ActionKind::event_timeout,
                                                    E(std::move(content)), kActionUpdate);
  }
  template <class C>
  auto update_state_timeout(C content) && {
    using E = StateTimeout<C>;
    return std::move(*this).template with<Timed<E>>(ActionKind::state_timeout,
                                                    E(std::move(content)), kActionUpdate);
  }
  template <class C>
  auto update_timeout(TimeoutName name, C content) && {
    using E = NamedTimeout<C>;
    return std::move(*this).template with<Timed<E>>(
        ActionKind::named_timeout, E{std::move(name), std::move(content)}, kActionUpdate);
  }

  // For the machine.
  Target& target() { return target_; }
  ActionList& actions() { return this->actions_; }

 private:
  template <class Added, class E>
  auto with(ActionKind kind, E event, uint32_t flags = 0) && {
    this->actions_.add_event(kind, std::move(event), flags);
    return Plan<Target, Item..., Added>(std::move(target_), std::move(this->actions_));
  }
  template <class E>
  auto timed(ActionKind kind, TimeoutAt at, E event) && {
    this->actions_.add_timeout(kind, at, std::move(event));
    return Plan<Target, Item..., Timed<E>>(std::move(target_), std::move(this->actions_));
  }
  Target target_;
};

/// What stop_and_reply returns.
class [[nodiscard]] StopAndReply : public CommonActions<StopAndReply> {
 public:
  explicit StopAndReply(ExitReason reason) : reason_(std::move(reason)) {}
  ExitReason& reason() { return reason_; }
  ActionList& actions() { return actions_; }

 private:
  ExitReason reason_;
};

enum class Turn : uint8_t { keep, next, repeat, stop };

template <class S, class E>
struct ReturnsAnother {
  template <class Case>
  static consteval bool check() {
    if constexpr (EventHandler<S, Case, E>) {
      using Returned =
          decltype(std::declval<S&>().handle_event(std::declval<Case>(), Exactly<E>()));
      using T = typename Awaited<Returned>::Type;
      return !std::is_void_v<T> && !std::is_same_v<T, Transition<S>>;
    } else {
      return false;
    }
  }
  template <class Case>
  static constexpr bool holds = check<Case>();
};
template <class S, class E>
consteval void check_returns() {
  static_assert(!AnyCase<typename S::State, ReturnsAnother<S, E>>::value,
                "handle_event must return otp::Transition of its class, or void, or an otp::Async "
                "of one of them");
}
template <class S, class E>
consteval void check_handled() {
  static_assert(kHandled<S, E>,
                "the state machine has no public handle_event that takes exactly this event, in "
                "any state");
  check_returns<S, E>();
}

template <class S, class E>
const Operation* event_operation_of();  // in statem_process.h

/// Makes the events in `actions` events of S, in the types that the plan lists.
template <class S, class... Item>
void address_events(ActionList& actions) {
  (check_handled<S, typename Item::Event>(), ...);
  if constexpr (sizeof...(Item) > 0) {
    const Operation* const operations[] = {event_operation_of<S, typename Item::Event>()...};
    actions.address(operations);
  }
}

}  // namespace internal

// ---- What a handler returns

/// Goes to `state`. If that equals the current one it is no change: postponed events stay, the
/// state timeout runs on, no enter call. OTP: {next_state, State, Data, Actions}.
template <class State>
internal::Plan<State> next_state(State state) {
  return internal::Plan<State>(std::move(state));
}
/// Stays. The same as returning nothing, with room for actions. OTP: {keep_state, Data, Actions}.
inline internal::Plan<internal::KeepState> keep_state() {
  return internal::Plan<internal::KeepState>({});
}
/// Stays, but the enter call is made again. OTP: {repeat_state, Data, Actions}.
inline internal::Plan<internal::RepeatState> repeat_state() {
  return internal::Plan<internal::RepeatState>({});
}
/// Answers callers, then ends as stop(reason) does. OTP: {stop_and_reply, Reason, Replies}.
inline internal::StopAndReply stop_and_reply(ExitReason reason) {
  return internal::StopAndReply(std::move(reason));
}
/// From init: the machine starts in `state`. OTP: {ok, State, Data, Actions}.
template <class State>
internal::Plan<State> ok(State state) {
  return internal::Plan<State>(std::move(state));
}

/// What handle_event of the machine S returns; made from next_state(...), keep_state(),
/// repeat_state(), stop(...) and stop_and_reply(...). A handler that only stays may return void.
template <class S>
class [[nodiscard]] Transition : public internal::TimeoutCancels<Transition<S>> {
 public:
  template <class Target, class... Item>
  Transition(internal::Plan<Target, Item...> plan) {
    using namespace internal;
    if constexpr (std::is_same_v<Target, RepeatState>) {
      turn_ = Turn::repeat;
    } else if constexpr (!std::is_same_v<Target, KeepState>) {
      static_assert(std::is_constructible_v<typename S::State, Target>,
                    "next_state must be given a value of the machine's State");
      turn_ = Turn::next;
      target_.emplace(std::move(plan.target()));
    }
    address_events<S, Item...>(plan.actions());
    this->actions_ = std::move(plan.actions());
  }
  Transition(Stop stop) : turn_(internal::Turn::stop), reason_(std::move(stop.reason)) {}
  Transition(internal::StopAndReply stop)
      : turn_(internal::Turn::stop), reason_(std::move(stop.reason())) {
    this->actions_ = std::move(stop.actions());
  }

  // The actions again, for a transition that is put together step by step:
  //     otp::Transition<Door> done = otp::keep_state();
  //     if (busy()) done.state_timeout(1s, Retry{});
  template <class E>
  Transition& postpone(E event) & {
    return add(internal::ActionKind::postpone, std::move(event));
  }
  template <class E>
  Transition& next_event(E event) & {
    return add(internal::ActionKind::next_event, std::move(event));
  }
  template <class C>
  Transition& event_timeout(TimeoutAt at, C content) & {
    return add(internal::ActionKind::event_timeout, EventTimeout<C>(std::move(content)), at);
  }
  template <class C>
  Transition& state_timeout(TimeoutAt at, C content) & {
    return add(internal::ActionKind::state_timeout, StateTimeout<C>(std::move(content)), at);
  }
  template <class C>
  Transition& timeout(TimeoutName name, TimeoutAt at, C content) & {
    return add(internal::ActionKind::named_timeout,
               NamedTimeout<C>{std::move(name), std::move(content)}, at);
  }

  // For the machine, and for tests of a handler.
  internal::Turn turn() const { return turn_; }
  std::optional<typename S::State>& target() { return target_; }
  ExitReason& reason() { return reason_; }
  internal::ActionList& actions() { return this->actions_; }

 private:
  template <class E>
  Transition& add(internal::ActionKind kind, E event, TimeoutAt at = infinity) {
    internal::check_handled<S, E>();
    this->actions_.add_timeout(kind, at, std::move(event), internal::event_operation_of<S, E>());
    return *this;
  }
  internal::Turn turn_ = internal::Turn::keep;
  std::optional<typename S::State> target_;
  ExitReason reason_;
};

/// What handle_enter returns when it is more than void: keep_state() with replies and timeouts, or
/// stop(...). It cannot change the state, postpone or insert. OTP: state_enter_result().
template <class S>
class [[nodiscard]] Entered {
 public:
  template <class... Item>
  Entered(internal::Plan<internal::KeepState, Item...> plan) {
    static_assert((internal::kIsTimed<Item> && ...),
                  "an enter call can neither postpone nor insert events");
    if constexpr ((internal::kIsTimed<Item> && ...)) {
      internal::address_events<S, Item...>(plan.actions());
    }
    actions_ = std::move(plan.actions());
  }
  Entered(Stop stop) : stops_(true), reason_(std::move(stop.reason)) {}
  Entered(internal::StopAndReply stop) : stops_(true), reason_(std::move(stop.reason())) {
    actions_ = std::move(stop.actions());
  }

  // For the machine.
  bool stops() const { return stops_; }
  ExitReason& reason() { return reason_; }
  internal::ActionList& actions() { return actions_; }

 private:
  bool stops_ = false;
  ExitReason reason_;
  internal::ActionList actions_;
};

/// What init returns when it is more than a State: ok(State::locked) with actions, or ignore(),
/// error(reason), stop(reason) as for a GenServer.
template <class S>
class [[nodiscard]] Initial {
 public:
  template <class Target, class... Item>
  Initial(internal::Plan<Target, Item...> plan) {
    static_assert(std::is_constructible_v<typename S::State, Target>,
                  "init must say in which State the machine starts: otp::ok(State::...)");
    static_assert((!internal::kIsPostponed<Item> && ...), "init has no event to postpone");
    state_.emplace(std::move(plan.target()));
    internal::address_events<S, Item...>(plan.actions());
    actions_ = std::move(plan.actions());
  }
  Initial(Init failure) : failure_(std::move(failure)) {}
  Initial(Stop stop) : failure_(std::move(stop)) {}

  // For the machine.
  std::optional<typename S::State>& state() { return state_; }
  Init& failure() { return failure_; }
  internal::ActionList& actions() { return actions_; }

 private:
  std::optional<typename S::State> state_;
  Init failure_;
  internal::ActionList actions_;
};

}  // namespace otp
