#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/server_process.h"

/// Agent: a value that one process owns, and functions that are sent to it.
///
///     using Scores = otp::Agent<std::map<std::string, int>>;
///
///     auto scores = (co_await Scores::start_link([] { return std::map<std::string, int>(); }))
///                       .or_exit();
///     auto win = [name](std::map<std::string, int>& all) { ++all[name]; };
///     co_await Scores::update(scores, win);
///     auto read = [name](const std::map<std::string, int>& all) { return all.at(name); };
///     int n = co_await Scores::get(scores, read);
///
/// The functions run inside the agent, one at a time, in the order in which they arrive. What they
/// capture travels to another process: capture values, never references or `this`. They do not wait
/// (return no Async) and are short, as everybody else's function waits meanwhile.
///
/// An agent is a server: it has a name if StartOptions give one, it is otp::child<Scores>(id,
/// function) in a supervisor, its address is otp::Server<Scores> or otp::Name<Scores>. A function
/// that throws ends it, as a callback would. Not for state with rules of its own: that is a
/// GenServer, whose messages say what may happen to it. OTP: Elixir's Agent.
namespace otp {

template <class T>
class Agent;

namespace internal {

/// A function on its way to an agent.
template <class F>
struct AgentFunction {
  F function;
};

template <class F, class T>
using AgentReturn = std::invoke_result_t<F&, T>;

/// The pair that get_and_update wants: what the caller gets, and the new state.
template <class P, class T>
inline constexpr bool kIsGetAndState = false;
template <class R, class T>
inline constexpr bool kIsGetAndState<std::pair<R, T>, T> = true;

/// F may be given to Agent<T>::get_and_update.
template <class F, class T>
concept GetsAndUpdates = std::is_invocable_v<F&, T> && kIsGetAndState<AgentReturn<F, T>, T>;
/// F may be given to Agent<T>::update and cast: it changes the state, or makes a new one of it.
template <class F, class T>
concept Updates = (std::is_invocable_v<F&, T&> && std::is_void_v<AgentReturn<F, T&>>) ||
                  (std::is_invocable_v<F&, T> && std::is_same_v<AgentReturn<F, T>, T>);

/// Waits for what a function gives back.
template <class R>
class [[nodiscard]] AgentCall : public CallBase {
 public:
  AgentCall(Pid agent, CallOptions options, Letter* request, std::string_view what)
      : CallBase(agent, options.timeout, request), what_(what) {}
  bool await_ready() noexcept { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  R await_resume() {
    ExitReason error;
    Letter* reply = finish(error);
    if (reply == nullptr) throw_described(std::move(error), "gen_server", what_);
    return take_reply_value<R>(self_process(), reply);
  }

 private:
  const std::string_view what_;
};

template <class T>
class ServerProcess<Agent<T>> final : public ServerBase {
  using Arguments = typename Agent<T>::Args;

 public:
  ServerProcess(std::string name, StartAck ack, Arguments arguments)
      : ServerBase(internal::server_type<Agent<T>>, std::move(name), ack),
        initial_(std::move(arguments.initial)) {}

  template <class F>
  static void invoke_get(Process& process, Letter& letter) {
    run<F>(process, letter, [](ServerProcess& self, F& function) {
      using R = std::remove_cvref_t<AgentReturn<F, const T&>>;
      self.give<R>(R(std::invoke(function, std::as_const(*self.state_))));
    });
  }
  template <class F>
  static void invoke_update(Process& process, Letter& letter) {
    run<F>(process, letter, [](ServerProcess& self, F& function) {
      self.change(function);
      LibraryScope scope(env());
      self.answer_void();
    });
  }
  template <class F>
  static void invoke_get_and_update(Process& process, Letter& letter) {
    run<F>(process, letter, [](ServerProcess& self, F& function) {
      auto both = std::invoke(function, std::move(*self.state_));
      *self.state_ = std::move(both.second);
      self.give<decltype(both.first)>(std::move(both.first));
    });
  }
  template <class F>
  static void invoke_cast(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.hold(letter);
    self.user([&] { self.change(letter.as<AgentFunction<F>>().function); });
  }

 private:
  template <class F, class Code>
  static void run(Process& process, Letter& letter, Code code) {
    auto& self = static_cast<ServerProcess&>(process);
    self.begin_call(letter);
    self.hold(letter);
    self.user([&] { code(self, letter.as<AgentFunction<F>>().function); });
  }
  template <class R>
  void give(R value) {
    LibraryScope scope(env());
    answer<R>(std::move(value));
  }
  template <class F>
  void change(F& function) {
    if constexpr (std::is_invocable_v<F&, T&> && std::is_void_v<AgentReturn<F, T&>>) {
      std::invoke(function, *state_);
    } else {
      *state_ = std::invoke(function, std::move(*state_));
    }
  }

  void construct() override {
    user([&] {
      state_.emplace(initial_());
      LibraryScope scope(env());
      start_done(Step{});
    });
  }
  void dispatch_info(Letter* letter) override { unhandled_info(letter); }
  void dispatch_timeout() override {}
  void dispatch_continue(Letter* letter) override { free_letter(letter); }
  void run_terminate(const ExitReason&) override { terminated(nullptr); }
  void destroy_server() noexcept override {
    UserScope scope(env());
    state_.reset();
    initial_ = nullptr;
  }
  bool drops_expired() const override { return false; }
  void roll_back() noexcept override {}
  void print_state(BoundedWriter& out) override {
    UserScope scope(env());
    if (state_) {
      format_value(out, *state_);
    } else {
      out.write("(there is no state yet)");
    }
  }
  std::string why_no_state() const override { return {}; }
  void* state_of(const void* type) override {
    return state_ && type == &state_type<T> ? &*state_ : nullptr;
  }

  std::function<T()> initial_;
  std::optional<T> state_;
};

}  // namespace internal

template <class T>
class Agent {
 public:
  /// How it starts: a function that makes the state, inside the agent, again at each restart.
  struct Args {
    template <class F>
      requires std::is_invocable_r_v<T, F&>
    Args(F function) : initial(std::move(function)) {}
    std::function<T()> initial;
  };
  using Ref = Server<Agent>;

  /// Starts an agent linked to this process, and waits until `initial()` has made its state.
  /// Errors: as otp::start_link; what `initial` throws is the reason. OTP: Agent.start_link/2.
  static auto start_link(Args initial, StartOptions options = {}) {
    return otp::start_link<Agent>(std::move(initial), std::move(options));
  }
  /// Without a link. OTP: Agent.start/2.
  static auto start(Args initial, StartOptions options = {}) {
    return otp::start<Agent>(std::move(initial), std::move(options));
  }

  /// co_await gives what `function(const T&)` returns. Errors: as otp::call. OTP: Agent.get/3.
  template <class F>
  static auto get(const Ref& agent, F function, CallOptions options = {}) {
    static_assert(std::is_invocable_v<F&, const T&>, "get wants a function of const T&");
    if constexpr (std::is_invocable_v<F&, const T&>) {
      using R = std::remove_cvref_t<internal::AgentReturn<F, const T&>>;
      static_assert(!std::is_void_v<R>, "get wants a function that returns something");
      require_shareable<R>();
      return request<R>(agent, get_operation<F>, std::move(function), options, "get");
    }
  }
  /// Changes the state: `void function(T&)`, or `T function(T)`. OTP: Agent.update/3.
  template <class F>
  static auto update(const Ref& agent, F function, CallOptions options = {}) {
    static_assert(internal::Updates<F, T>,
                  "update wants a function void(T&), or one that takes T and returns the new T");
    if constexpr (internal::Updates<F, T>) {
      return request<void>(agent, update_operation<F>, std::move(function), options, "update");
    }
  }
  /// Both: `std::pair<R, T> function(T)` returns what the caller gets and the new state.
  /// OTP: Agent.get_and_update/3. Differs: a function that returns no pair does not compile.
  template <class F>
  static auto get_and_update(const Ref& agent, F function, CallOptions options = {}) {
    static_assert(internal::GetsAndUpdates<F, T>,
                  "get_and_update wants a function that takes T and returns std::pair<R, T>");
    if constexpr (internal::GetsAndUpdates<F, T>) {
      using R = typename internal::AgentReturn<F, T>::first_type;
      require_shareable<R>();
      return request<R>(agent, both_operation<F>, std::move(function), options, "get_and_update");
    }
  }
  /// As update, but does not wait. OTP: Agent.cast/2.
  template <class F>
  static Sent cast(const Ref& agent, F function) {
    static_assert(internal::Updates<F, T>,
                  "cast wants a function void(T&), or one that takes T and returns the new T");
    if constexpr (internal::Updates<F, T>) {
      using namespace internal;
      using Message = AgentFunction<F>;
      LibraryScope scope(env());
      deliver_message(agent.pid(), make_letter<Message>(LetterKind::cast, cast_operation<F>,
                                                        Message{std::move(function)}));
    }
    return Sent();
  }
  /// Ends the agent; returns when it is gone and its name is free. OTP: Agent.stop/3.
  static Async<void> stop(const Ref& agent, ExitReason reason = {}, Timeout timeout = infinity) {
    return otp::stop(agent, std::move(reason), timeout);
  }

 private:
  using Process = internal::ServerProcess<Agent>;
  template <class F>
  static constexpr internal::Operation operation_of(void (*invoke)(internal::Process&,
                                                                   internal::Letter&)) {
    return {&internal::message_type<internal::AgentFunction<F>>, &internal::server_type<Agent>,
            invoke};
  }
  template <class F>
  static inline const internal::Operation get_operation =
      operation_of<F>(&Process::template invoke_get<F>);
  template <class F>
  static inline const internal::Operation update_operation =
      operation_of<F>(&Process::template invoke_update<F>);
  template <class F>
  static inline const internal::Operation both_operation =
      operation_of<F>(&Process::template invoke_get_and_update<F>);
  template <class F>
  static inline const internal::Operation cast_operation =
      operation_of<F>(&Process::template invoke_cast<F>);

  template <class R, class F>
  static internal::AgentCall<R> request(const Ref& agent, const internal::Operation& operation,
                                        F function, CallOptions options, std::string_view what) {
    using Message = internal::AgentFunction<F>;
    return internal::AgentCall<R>(
        agent.pid(), options,
        internal::make_call_letter<Message>(operation, Message{std::move(function)}), what);
  }
};

}  // namespace otp
