#pragma once

#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/statem_actions.h"
#include "otp/behaviour/statem_events.h"
#include "otp/behaviour/statem_process.h"
#include "otp/behaviour/statem_states.h"

/// gen_statem: a state machine in a process. For a server whose answers depend on where it stands:
/// a connection, a lock, a session.
///
///     struct Enter { using Reply = bool; std::string code; };   // a call: it has a Reply
///     struct Push {};                                           // a cast
///     struct Relock {};                                         // the content of a timeout
///
///     class Door {
///      public:
///       using Behaviour = otp::GenStatem;
///       enum class State { locked, open };
///       struct Args { std::string code; };
///
///       explicit Door(Args args) : code_(args.code) {}
///       State init() { return State::locked; }
///
///       otp::Transition<Door> handle_event(otp::In<State::locked>, otp::Call<Enter> call) {
///         if (call->code != code_) return otp::keep_state().reply(call, false);
///         return otp::next_state(State::open).reply(call, true).state_timeout(10s, Relock{});
///       }
///       otp::Transition<Door> handle_event(otp::In<State::open>, otp::Call<Enter> call) {
///         return otp::keep_state().postpone(std::move(call));     // once it is locked again
///       }
///       void handle_event(otp::In<State::open>, otp::Cast<Push>) { ++visitors_; }
///       void handle_event(otp::In<State::locked>, otp::Cast<Push>) {}
///       otp::Transition<Door> handle_event(otp::In<State::open>, otp::StateTimeout<Relock>) {
///         return otp::next_state(State::locked);
///       }
///
///      private:
///       std::string code_;
///       int visitors_ = 0;
///     };
///
///     auto door = (co_await otp::start_link<Door>({.code = "4711"})).or_exit();
///     bool let_in = co_await otp::call(door, Enter{"4711"});
///     otp::cast(door, Push{});
///
/// It is started, named, supervised, listed in YAML, called, cast and sent to as a GenServer is
/// (gen_server.h). The overload set of handle_event is the protocol: for each state and each event
/// one overload, found by exactly its types. An event that no overload takes in any state does not
/// compile at the send; one that has none in the present state ends the machine with
/// {function_clause,[{Door,handle_event,[State,Type,Content]}]}: nothing is dropped silently.
///
///   constructor(Args), State init()      or otp::Initial<Door> init(): with actions, or a failure
///   handle_event(In<State::x>, Event)    in state x
///   handle_event(State, Event)           in the states that have no overload of their own
///   handle_enter(In<State::x>, State old), handle_enter(State, State old)
///                                        on entering x, also at the start (old = x); optional
///   terminate(ExitReason, State)         or (ExitReason); optional, as a GenServer's
///
/// Events: Call<M>, Cast<M>, Info<M>, Internal<M>, EventTimeout<C>, StateTimeout<C>,
/// NamedTimeout<C> (statem_events.h). handle_event returns otp::Transition<Door>, handle_enter
/// otp::Entered<Door>, or void: stay (statem_actions.h says what there is). Each may be an
/// otp::Async of that and wait; meanwhile no other event is handled. Plain messages of untyped
/// senders are listed as a GenServer's: `using Info = otp::Protocol<Tick>;`.
///
/// State may also be a std::variant of structs, one for each state, with data that only that state
/// has. Handlers then take the alternative, `handle_event(const Open& open, Event)`; each needs
/// operator==, as going to an equal state is no change.
///
/// sys (sys.h) sees the state, and the data if they are one plain struct in a public member `Data
/// data_`, or by `format_status`: get_state_as<Door::State>(door), get_state_as<Door::Data>(door).
///
/// OTP: gen_statem, callback_mode state_functions with state_enter. Differs: the event comes by
/// value, so postpone takes it back; a state without an enter callback needs none; data are the
/// members, and terminate sees them as the failing callback left them. Not for a server that is
/// always in the same state: that is a GenServer.
namespace otp {
namespace internal {

// What the compiler checks at each send to a state machine.
template <StateMachine S>
struct ChecksOf<S> {
  template <class M>
  static consteval void call() {
    static_assert(Request<M>, "this message has no Reply: it is a cast, use otp::cast");
    if constexpr (Request<M>) check_handled<S, otp::Call<M>>();
    require_shareable<M>();
    if constexpr (Request<M>) {
      if constexpr (!std::is_void_v<typename M::Reply>) require_shareable<typename M::Reply>();
    }
  }
  template <class M>
  static consteval void cast() {
    static_assert(!Request<M>, "this message has a Reply: it is a call, use otp::call");
    if constexpr (!Request<M>) check_handled<S, Cast<M>>();
    require_shareable<M>();
  }
  template <class M>
  static consteval void info() {
    check_handled<S, Info<M>>();
    require_shareable<M>();
  }
};

}  // namespace internal
}  // namespace otp
