#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/server_process.h"
#include "otp/behaviour/statem_actions.h"
#include "otp/behaviour/statem_events.h"
#include "otp/behaviour/statem_states.h"

/// The generic half of gen_statem: StatemBase is the machine, written once: the queue of events,
/// what is postponed, the timeouts. ServerProcess<S> for a state machine S only calls S's
/// callbacks.
namespace otp {

/// `using Behaviour = otp::GenStatem;` in a class says that it is a state machine.
/// OTP: -behaviour(gen_statem).
struct GenStatem {
  static constexpr const char* kName = "gen_statem";
};

namespace internal {

template <class S>
concept StateMachine = requires { requires std::same_as<typename S::Behaviour, GenStatem>; };

/// Invariants
///  (M1) events_ holds what comes before the mailbox: inserted events, then postponed ones that are
///       tried again. Its letters and those of postponed_ and timeouts_ are events: their operation
///       runs them.
///  (M2) A timeout that fires is a system letter naming its reference; one whose reference is not
///       in timeouts_ any more was cancelled or replaced, however late it comes.
///  (M3) Between two events the caller of the last call was answered or is watched, so it hears of
///       our end.
class StatemBase : public ServerBase {
 public:
  using ServerBase::ServerBase;

  bool has_urgent_work() const final;
  void on_urgent_work() final;
  std::string_view domain() const final { return "otp.gen_statem"; }

 protected:
  /// A bad return or a bad action: ends the machine as an exception of the callback would.
  void fail(const char* what, Term value);
  enum class Change : uint8_t { none, kept, changed };
  /// Takes the actions of the transition of `event`; null, with Change::none: of init or an enter
  /// call. False: a bad action ended the machine.
  bool take_actions(ActionList& actions, Change change, const Operation* event = nullptr);
  void stop_machine(ActionList& actions, ExitReason reason);
  /// After a transition: who called waits on, and hears of our end.
  void settle() { keep_waiting(); }
  [[noreturn]] void throw_function_clause(Term state, const char* kind,
                                          std::string_view content) const;
  void drop_events() noexcept;

 private:
  struct RunningTimeout {
    ActionKind kind;
    Term name;
    uint64_t reference = 0;  // 0: a zero timeout, due when events_ is empty
    TimerId timer = 0;
    uint16_t core = 0;
    OwnedLetter event;
  };
  void run_event(Letter* event) { event->operation->invoke(*this, *event); }
  bool send_reply(Letter* letter, const char* what_is_wrong);
  void take_timeout(Letter* letter);
  void arm(RunningTimeout& timeout, int64_t deadline);
  bool has_due() const { return due_now_ > 0; }
  void note_urgent_work() { set_may_have_urgent_work(!events_.empty() || has_due()); }
  RunningTimeout* find(ActionKind kind, const Term& name);
  void cancel(ActionKind kind, const Term& name);
  void disarm(RunningTimeout& timeout) noexcept;
  OwnedLetter take_due();
  void fired(Letter* letter);

  LetterQueue events_;     // (M1)
  LetterQueue postponed_;  // since the last state change, in the order of arrival
  std::vector<RunningTimeout> timeouts_;
  uint32_t due_now_ = 0;  // zero timeouts in timeouts_
};

template <StateMachine S>
class ServerProcess<S> final : public StatemBase {
 public:
  using State = typename S::State;

  template <class... A>
  ServerProcess(std::string name, StartAck ack, A&&... arguments)
      : StatemBase(internal::server_type<S>, std::move(name), ack),
        arguments_(std::forward<A>(arguments)...) {}

  S& server() { return *server_; }

  // From outside: the address of one of these is in the letter's Operation.
  template <class M>
  static void invoke_call(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.begin_call(letter);
    self.hold(letter);
    self.run(Call<M>{std::move(letter.as<M>()),
                     {Pid{0, letter.sender}, Reference{0, letter.reference}, self.pid()},
                     self.call_deadline()});
  }
  template <class M>
  static void invoke_cast(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.hold(letter);
    self.run(Cast<M>(std::move(letter.as<M>())));
  }
  template <class M>
  static void invoke_info(Process& process, Letter& letter) {
    static_cast<ServerProcess&>(process).template run_info<M>(&letter);
  }
  // From the machine itself.
  template <class E>
  static void invoke_event(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.hold(letter);
    E event = std::move(letter.as<E>());
    if constexpr (kIsCall<E>) {
      if (self.is_expired(event.deadline)) return (void)self.unwatch(event.from.reference.id);
    }
    self.run(std::move(event));
  }

 private:
  using Arguments = typename ArgsOf<S>::Type;
  using Arrow = Transition<S>;

  // -- The start.

  void construct() override {
    std::optional<Initial<S>> initial;
    user([&] {
      emplace();
      using Returned = decltype(server_->init());
      using T = typename Awaited<Returned>::Type;
      static_assert(std::is_same_v<T, State> || std::is_same_v<T, Initial<S>>,
                    "init() of a state machine returns its State or otp::Initial<S>, or an "
                    "otp::Async of one of them");
      if constexpr (Awaited<Returned>::waits) {
        Returned waiting = server_->init();
        LibraryScope scope(env());
        start_coroutine(finish_init(*this, std::move(waiting)));
      } else {
        initial.emplace(to_initial(server_->init()));
      }
    });
    if (initial) begin(std::move(*initial));
  }
  void emplace() {
    if constexpr (HasArgs<S> && std::is_constructible_v<S, Arguments>) {
      server_.emplace(std::move(*arguments_));
    } else {
      static_assert(std::is_default_constructible_v<S>,
                    "a state machine needs a constructor that takes its Args, or none");
      server_.emplace();
    }
    arguments_.reset();
  }
  static Initial<S> to_initial(Initial<S> initial) { return initial; }
  static Initial<S> to_initial(State state) { return Plan<State>(std::move(state)); }
  template <class T>
  static Async<void> finish_init(ServerProcess& self, Async<T> init) {
    self.initial_.emplace(to_initial(co_await std::move(init)));
  }
  void begin(Initial<S> initial) {
    if (!initial.state()) {
      if (initial.failure().step.kind == Step::Kind::go_on) {
        return fail("bad_return_from_init", Term::literal("ok"));
      }
      return start_done(std::move(initial.failure().step));
    }
    state_ = std::move(initial.state());
    start_done(Step{});
    handling([&] {
      if (!is_state(*state_)) return fail("bad_return_from_init", state_term(*state_));
      if (take_actions(initial.actions(), Change::none)) enter(*state_);
    });
  }

  // -- Events.

  template <class E>
  void run(E event) {
    event_ = event_operation_of<S, E>();
    std::optional<Arrow> arrow;
    user([&] { arrow = dispatch(std::move(event)); });
    if (arrow) follow_arrow(std::move(*arrow));
  }
  /// Nothing: the handler waits.
  template <class E>
  std::optional<Arrow> dispatch(E event) {
    std::optional<Arrow> arrow;
    bool handled = false;
    with_case(*state_, [&](const auto& in) {
      using Case = const std::remove_cvref_t<decltype(in)>&;
      if constexpr (EventHandler<S, Case, E>) {
        handled = true;
        call_handler<Case, E>(in, std::move(event), arrow);
      }
    });
    if (!handled)
      throw_function_clause(state_term(*state_), event_type<E>(), type_name<typename E::Message>());
    return arrow;
  }
  template <class Case, class E>
  void call_handler(Case in, E event, std::optional<Arrow>& arrow) {
    using Returned = decltype(server_->handle_event(in, Exactly<E>()));
    using T = typename Awaited<Returned>::Type;
    if constexpr (Awaited<Returned>::waits) {
      Returned waiting = server_->handle_event(in, std::move(event));
      LibraryScope scope(env());
      start_coroutine(finish_event(*this, std::move(waiting)));
    } else if constexpr (std::is_void_v<T>) {
      server_->handle_event(in, std::move(event));
      arrow.emplace(keep_state());
    } else if constexpr (std::is_same_v<T, Arrow>) {  // else check_returns() has said it
      arrow.emplace(server_->handle_event(in, std::move(event)));
    }
  }
  template <class T>
  static Async<void> finish_event(ServerProcess& self, Async<T> handler) {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(handler);
      self.arrow_.emplace(keep_state());
    } else {
      self.arrow_.emplace(co_await std::move(handler));
    }
  }

  // -- Transitions.

  void coroutine_done() override {
    if (initial_) {
      Initial<S> initial = std::move(*initial_);
      initial_.reset();
      return begin(std::move(initial));
    }
    handling([&] {
      if (arrow_) {
        Arrow arrow = std::move(*arrow_);
        arrow_.reset();
        follow_arrow(std::move(arrow));
      } else if (entered_) {
        Entered<S> entered = std::move(*entered_);
        entered_.reset();
        follow_entered(std::move(entered));
      }
    });
  }

  static bool is_state(const State& state) {
    return with_case(state, [](const auto&) {});
  }

  void follow_arrow(Arrow arrow) {
    if (arrow.turn() == Turn::stop) {
      return stop_machine(arrow.actions(), std::move(arrow.reason()));
    }
    if (arrow.turn() == Turn::next && !is_state(*arrow.target())) {
      return fail("bad_return_from_state_function", state_term(*arrow.target()));
    }
    if (arrow.turn() == Turn::next && !same_state(*arrow.target(), *state_)) {
      const State old = std::exchange(*state_, std::move(*arrow.target()));
      if (take_actions(arrow.actions(), Change::changed, event_)) enter(old);
      return;
    }
    if (!take_actions(arrow.actions(), Change::kept, event_)) return;
    arrow.turn() == Turn::repeat ? enter(*state_) : settle();
  }

  void enter(const State& old) {
    std::optional<Entered<S>> entered;
    user([&] {
      entered.emplace(keep_state());
      with_case(*state_, [&](const auto& in) {
        using Case = const std::remove_cvref_t<decltype(in)>&;
        if constexpr (EnterHandler<S, Case>) call_enter<Case>(in, old, entered);
      });
    });
    if (entered) follow_entered(std::move(*entered));
  }
  template <class Case>
  void call_enter(Case in, const State& old, std::optional<Entered<S>>& entered) {
    using Returned = decltype(server_->handle_enter(in, old));
    using T = typename Awaited<Returned>::Type;
    static_assert(std::is_void_v<T> || std::is_same_v<T, Entered<S>>,
                  "handle_enter must return otp::Entered of its class, or void, or an otp::Async "
                  "of one of them");
    entered.reset();
    if constexpr (Awaited<Returned>::waits) {
      Returned waiting = server_->handle_enter(in, old);
      LibraryScope scope(env());
      start_coroutine(finish_enter(*this, std::move(waiting)));
    } else if constexpr (std::is_void_v<T>) {
      server_->handle_enter(in, old);
      entered.emplace(keep_state());
    } else {
      entered.emplace(server_->handle_enter(in, old));
    }
  }
  template <class T>
  static Async<void> finish_enter(ServerProcess& self, Async<T> handler) {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(handler);
      self.entered_.emplace(keep_state());
    } else {
      self.entered_.emplace(co_await std::move(handler));
    }
  }
  void follow_entered(Entered<S> entered) {
    if (entered.stops()) return stop_machine(entered.actions(), std::move(entered.reason()));
    if (take_actions(entered.actions(), Change::none)) settle();
  }

  // -- What is nobody's type.

  template <class M>
  void run_info(Letter* letter) {
    check_returns<S, Info<M>>();
    hold(*letter);
    run(Info<M>(move_message<M>(*this, *letter)));
  }
  template <class... M>
  bool find_info(Letter* letter, Protocol<M...>) {
    return ((is_listed<M>(*letter) ? (run_info<M>(letter), true) : false) || ...);
  }
  template <class M>
  static bool is_listed(const Letter& letter) {
    return letter.kind == LetterKind::message && is_message<M>(letter);
  }
  void dispatch_info(Letter* letter) override {
    if (is_message<Down>(*letter)) return run_info<Down>(letter);
    if (is_message<ExitMessage>(*letter)) return run_info<ExitMessage>(letter);
    if constexpr (requires { typename S::Info; }) {
      if (find_info(letter, typename S::Info())) return;
    }
    const std::string_view content = letter->operation->type->name;
    hold(*letter);
    user([&] { throw_function_clause(state_term(*state_), "info", content); });
  }
  void dispatch_timeout() override {}
  void dispatch_continue(Letter* letter) override { free_letter(letter); }

  // -- The end.

  void run_terminate(const ExitReason& reason) override {
    if constexpr (HasTerminate<S> || requires { server_->terminate(reason, *state_); }) {
      if (!server_ || !state_) return terminated(nullptr);
      std::exception_ptr thrown;
      {
        UserScope scope(env());
        try {
          if (call_terminate(reason)) return;
        } catch (...) {
          thrown = std::current_exception();
        }
      }
      terminated(std::move(thrown));
    } else {
      terminated(nullptr);
    }
  }
  /// True: it waits.
  bool call_terminate(const ExitReason& reason) {
    auto call = [&] {
      if constexpr (HasTerminate<S>) {
        return server_->terminate(reason);
      } else {
        return server_->terminate(reason, *state_);
      }
    };
    if constexpr (Awaited<decltype(call())>::waits) {
      auto waiting = call();
      LibraryScope library(env());
      start_coroutine(std::move(waiting));
      return true;
    } else {
      call();
      return false;
    }
  }
  void destroy_server() noexcept override {
    drop_events();
    UserScope scope(env());
    initial_.reset();
    arrow_.reset();
    entered_.reset();
    server_.reset();
    state_.reset();
    arguments_.reset();
  }
  bool drops_expired() const override {
    if constexpr (requires { S::drop_expired; }) return S::drop_expired;
    return false;
  }

  // -- What sys asks.

  static constexpr bool kHasData = requires(S& s) {
    typename S::Data;
    { s.data_ } -> std::same_as<typename S::Data&>;
  };
  void roll_back() noexcept override {}
  void print_state(BoundedWriter& out) override {
    UserScope scope(env());
    if (!server_ || !state_) {
      out.write("(init has not finished)");
      return;
    }
    out.write('{');
    if constexpr (std::is_enum_v<State>) {
      out.write(enum_name(*state_));
    } else {
      format_value(out, *state_);
    }
    out.write(", ");
    if constexpr (FormatsStatus<S>) {
      std::as_const(*server_).format_status(out);
    } else if constexpr (kHasData) {
      format_value(out, server_->data_);
    } else {
      out.write("(").write(type_name<S>()).write(" has no public member `Data data_`)");
    }
    out.write('}');
  }
  std::string why_no_state() const override { return {}; }
  void* state_of(const void* type) override {
    if (!server_ || !state_) return nullptr;
    if (type == &state_type<State>) return &*state_;
    if constexpr (kHasData) {
      if (type == &state_type<typename S::Data>) return &server_->data_;
    }
    return nullptr;
  }

  std::optional<Arguments> arguments_;
  std::optional<S> server_;
  std::optional<State> state_;
  const Operation* event_ = nullptr;  // the event being handled
  // What a coroutine left, until it is gone.
  std::optional<Initial<S>> initial_;
  std::optional<Arrow> arrow_;
  std::optional<Entered<S>> entered_;
};

template <class S, class E>
inline const Operation event_operation{&message_type<E>, &server_type<S>,
                                       &ServerProcess<S>::template invoke_event<E>};
template <class S, class E>
const Operation* event_operation_of() {
  return &event_operation<S, E>;
}

}  // namespace internal
}  // namespace otp
