#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "otp/behaviour/callbacks.h"
#include "otp/behaviour/server.h"
#include "otp/behaviour/steps.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime.h"

/// The generic half of GenServer: one process that owns a server object and hands it one message at
/// a time. ServerBase is the machine, written once; ServerProcess<S> only calls S's callbacks.
namespace otp::internal {

inline constexpr uint8_t kIgnored = 32;  // a failed start's reply: init said ignore

/// What a server is doing: which rules hold for messages, exceptions and the end.
enum class Phase : uint8_t { starting, idle, handling, terminating };

/// The acknowledgement of a start: who waits for it.
struct StartAck {
  uint64_t caller = 0;
  uint64_t reference = 0;
};

class ServerBase : public Process {
 public:
  ServerBase(const ServerType& type, std::string name, StartAck ack)
      : type_(type), name_(std::move(name)), ack_(ack) {}

  void on_start() final;
  void on_message(Letter* letter) final;
  void on_coroutine_done() final;
  void on_idle_timeout() final;
  bool has_urgent_work() const final;
  void on_urgent_work() final;
  void on_exit() noexcept final;
  void answer_waiting() noexcept final;
  std::string_view label() const final { return type_.name; }
  const void* server_type() const final { return &type_; }

  // -- For the invokers, which run callbacks of S.

  /// Runs `code` as user code; an exception becomes the fault of this server.
  template <class F>
  void user(F&& code) {
    std::exception_ptr thrown;
    {
      UserScope scope(env());
      try {
        code();
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    if (thrown != nullptr) fault(std::move(thrown));
  }
  void begin_call(Letter& letter);
  /// After a callback: continue, idle timeout or stop.
  void follow(Step step);
  /// After handle_call without a reply: the caller's monitor stays until it is answered.
  void keep_waiting();
  template <class R>
  void answer(R value) {
    Letter* letter = make_letter<R>(LetterKind::reply, plain_operation<R>, std::move(value));
    send_answer(letter);
  }
  void answer_void() { send_answer(make_signal(LetterKind::reply)); }
  void start_done(Step step);
  void terminated(std::exception_ptr thrown);
  uint64_t call_reference() const { return call_reference_; }
  uint64_t call_caller() const { return call_caller_; }
  int64_t call_deadline() const { return call_deadline_; }
  bool initialised() const { return phase_ != Phase::starting; }

 protected:
  // What only S knows.
  virtual void construct() = 0;                    // calls start_done or starts a coroutine
  virtual void dispatch_info(Letter* letter) = 0;  // handle_info of what no typed sender addressed
  virtual void dispatch_timeout() = 0;
  virtual void dispatch_continue(Letter* letter) = 0;
  virtual void run_terminate(const ExitReason& reason) = 0;  // calls terminated() or a coroutine
  virtual void destroy_server() noexcept = 0;
  virtual bool drops_expired() const = 0;

  void unhandled_info(Letter* letter);

 private:
  void handle(Letter* letter);
  void fault(std::exception_ptr thrown);
  void terminate_with(ExitReason reason);
  void send_answer(Letter* letter);
  void acknowledge(Letter* letter);
  void fail_start(ExitReason reason, ExitReason answer, uint8_t flags);
  bool register_own_name();

  const ServerType& type_;
  std::string name_;
  StartAck ack_;
  uint64_t call_caller_ = 0;  // of the call being handled, 0 = none or answered
  uint64_t call_reference_ = 0;
  int64_t call_deadline_ = TimerWheel::kNever;
  OwnedLetter next_;         // for handle_continue
  ExitReason start_answer_;  // of a failed start
  ExitReason stop_reason_;
  bool deferred_stop_ = false;  // stop_reason_ holds once the callback's coroutine has ended
  uint8_t start_flags_ = 0;
  Phase phase_ = Phase::starting;
};

template <class R, class T>
inline constexpr bool kIsCallResult =
    std::is_same_v<T, CallResult<R>> || std::is_same_v<T, CastResult> || std::is_same_v<T, Stop>;
template <class T>
inline constexpr bool kIsCastResult = std::is_void_v<T> || std::is_constructible_v<CastResult, T>;

/// Requests that every server answers itself (stop, sys): run with the server between two messages.
struct SystemRequest {
  void (*run)(ServerBase& server, Letter& letter);
};

template <class S>
class ServerProcess final : public ServerBase {
 public:
  template <class... A>
  ServerProcess(std::string name, StartAck ack, A&&... arguments)
      : ServerBase(internal::server_type<S>, std::move(name), ack),
        arguments_(std::forward<A>(arguments)...) {}

  S& server() { return *server_; }

  // One of these for each (S, M): the address is in the letter's Operation.
  template <class M>
  static void invoke_call(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.begin_call(letter);
    M message = std::move(letter.as<M>());
    self.consume(&letter);
    self.user([&] { self.template call_handler<M>(std::move(message)); });
  }
  template <class M>
  static void invoke_cast(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    M message = std::move(letter.as<M>());
    self.consume(&letter);
    if constexpr (CastHandler<S, M>) {
      self.user([&] {
        self.follow_async([&] { return self.server_->handle_cast(std::move(message)); });
      });
    }
  }
  template <class M>
  static void invoke_info(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.template info_handler<M>(&letter);
  }

 private:
  using Arguments = typename ArgsOf<S>::Type;

  void construct() override {
    user([&] {
      emplace();
      if constexpr (HasInit<S>) {
        using Returned = decltype(server_->init());
        static_assert(std::is_same_v<typename Awaited<Returned>::Type, Init>,
                      "init() must return otp::Init or otp::Async<otp::Init>");
        if constexpr (Awaited<Returned>::waits) {
          LibraryScope scope(env());
          start_coroutine(finish_init(*this, server_->init()));
        } else {
          Init init = server_->init();
          LibraryScope scope(env());
          start_done(std::move(init.step));
        }
      } else {
        LibraryScope scope(env());
        start_done(Step{});
      }
    });
  }

  void emplace() {
    if constexpr (HasArgs<S> && std::is_constructible_v<S, Arguments>) {
      server_.emplace(std::move(*arguments_));
    } else {
      static_assert(std::is_default_constructible_v<S>,
                    "a server needs a constructor that takes its Args, or none");
      server_.emplace();
    }
    arguments_.reset();
  }

  static Async<void> finish_init(ServerProcess& self, Async<Init> init) {
    Init done = co_await std::move(init);
    self.start_done(std::move(done.step));
  }

  template <class M>
  void call_handler(M message) {
    using R = typename ReplyOf<M>::Type;
    if constexpr (CallHandler<S, M>) {
      finish_handler<R>([&] { return server_->handle_call(std::move(message)); });
    } else if constexpr (CallHandlerWithFrom<S, M, R>) {
      From<R> from{Pid{0, call_caller()}, Reference{0, call_reference()}, pid()};
      finish_handler<R>([&] { return server_->handle_call(std::move(message), from); });
    }
  }
  template <class R, class F>
  void finish_handler(F handler) {
    using Returned = decltype(handler());
    if constexpr (Awaited<Returned>::waits) {
      Returned waiting = handler();
      LibraryScope scope(env());
      start_coroutine(finish_call<R>(*this, std::move(waiting)));
    } else if constexpr (std::is_void_v<Returned>) {
      handler();
      LibraryScope scope(env());
      answer_void();
    } else {
      Returned result = handler();
      LibraryScope scope(env());
      deliver_result<R>(std::move(result));
    }
  }
  template <class R, class T>
  static Async<void> finish_call(ServerProcess& self, Async<T> handler) {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(handler);
      LibraryScope scope(env());
      self.answer_void();
    } else {
      T result = co_await std::move(handler);
      LibraryScope scope(env());
      self.template deliver_result<R>(std::move(result));
    }
  }
  template <class R, class T>
  void deliver_result(T result) {
    if constexpr (std::is_same_v<T, R>) {
      answer<R>(std::move(result));
    } else if constexpr (kIsCallResult<R, T>) {
      CallResult<R> full(std::move(result));
      if constexpr (std::is_void_v<R>) {
        full.replied ? answer_void() : keep_waiting();
      } else {
        full.value ? answer<R>(std::move(*full.value)) : keep_waiting_unless_stopping(full.step);
      }
      follow(std::move(full.step));
    }
  }
  void keep_waiting_unless_stopping(const Step& step) {
    if (step.kind != Step::Kind::stop) keep_waiting();
  }

  /// Runs a callback that has no caller: handle_cast, handle_info, handle_continue.
  template <class F>
  void follow_async(F handler) {
    using Returned = decltype(handler());
    static_assert(
        kIsCastResult<typename Awaited<Returned>::Type>,
        "handle_cast, handle_info and handle_continue return void or otp::CastResult, or an "
        "otp::Async of one of them");
    if constexpr (Awaited<Returned>::waits) {
      Returned waiting = handler();
      LibraryScope scope(env());
      start_coroutine(finish_cast(*this, std::move(waiting)));
    } else if constexpr (std::is_void_v<Returned>) {
      handler();
    } else {
      CastResult result(handler());
      LibraryScope scope(env());
      follow(std::move(result.step));
    }
  }
  template <class T>
  static Async<void> finish_cast(ServerProcess& self, Async<T> handler) {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(handler);
    } else {
      CastResult result(co_await std::move(handler));
      LibraryScope scope(env());
      self.follow(std::move(result.step));
    }
  }

  template <class M>
  void info_handler(Letter* letter) {
    if constexpr (InfoHandler<S, M>) {
      M message = take_message<M>(*this, letter);
      user([&] { follow_async([&] { return server_->handle_info(std::move(message)); }); });
    } else {
      unhandled_info(letter);
    }
  }
  template <class... M>
  bool find_info(Letter* letter, Protocol<M...>) {
    return ((is_listed_info<M>(*letter) ? (info_handler<M>(letter), true) : false) || ...);
  }
  template <class M>
  static bool is_listed_info(const Letter& letter) {
    if constexpr (std::is_void_v<M>) {
      return false;
    } else {
      return letter.kind == LetterKind::message && is_message<M>(letter);
    }
  }
  void dispatch_info(Letter* letter) override {
    if (is_message<Down>(*letter)) return info_handler<Down>(letter);
    if (is_message<ExitMessage>(*letter)) return info_handler<ExitMessage>(letter);
    if (!find_info(letter, typename InfoTypes<S>::Type())) unhandled_info(letter);
  }
  void dispatch_timeout() override {
    if constexpr (InfoHandler<S, IdleTimeout>) {
      user([&] { follow_async([&] { return server_->handle_info(IdleTimeout()); }); });
    }
  }

  template <class C>
  bool try_continue(Letter* letter) {
    if constexpr (ContinueHandler<S, C>) {
      if (letter->operation->type != &message_type<C>) return false;
      C value = std::move(letter->as<C>());
      free_letter(letter);
      user([&] { follow_async([&] { return server_->handle_continue(std::move(value)); }); });
      return true;
    } else {
      return false;
    }
  }
  template <class... C>
  bool find_continue(Letter* letter, Protocol<C...>) {
    return (try_continue<C>(letter) || ...);
  }
  void dispatch_continue(Letter* letter) override {
    if (find_continue(letter, typename ContinueTypes<S>::Type())) return;
    Term type = Term::atom(std::string(letter->operation->type->name));
    free_letter(letter);
    user([&] { throw Exit(ExitReason::tagged("no_handle_continue", type)); });
  }

  void run_terminate(const ExitReason& reason) override {
    if constexpr (HasTerminate<S>) {
      if (!server_) return terminated(nullptr);
      using Returned = decltype(server_->terminate(reason));
      std::exception_ptr thrown;
      {
        UserScope scope(env());
        try {
          if constexpr (Awaited<Returned>::waits) {
            Returned waiting = server_->terminate(reason);
            LibraryScope library(env());
            start_coroutine(std::move(waiting));
            return;
          } else {
            server_->terminate(reason);
          }
        } catch (...) {
          thrown = std::current_exception();
        }
      }
      terminated(std::move(thrown));
    } else {
      terminated(nullptr);
    }
  }
  void destroy_server() noexcept override {
    UserScope scope(env());
    server_.reset();
    arguments_.reset();
  }
  bool drops_expired() const override {
    if constexpr (requires { S::drop_expired; }) return S::drop_expired;
    return false;
  }

  std::optional<Arguments> arguments_;
  std::optional<S> server_;
};

}  // namespace otp::internal
