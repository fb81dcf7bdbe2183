#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "otp/behaviour/callbacks.h"
#include "otp/behaviour/server.h"
#include "otp/behaviour/steps.h"
#include "otp/behaviour/sys_process.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime.h"

/// The generic half of GenServer: one process that owns a server object and hands it one message at
/// a time. ServerBase is the machine, written once; ServerProcess<S> only calls S's callbacks.
namespace otp::internal {

inline constexpr uint8_t kIgnored = 32;  // a failed start's reply: init said ignore

/// What a server is doing: which rules hold for messages, exceptions and the end.
enum class Phase : uint8_t { starting, idle, handling, terminating };

class ServerBase : public SysProcess {
 public:
  ServerBase(const ServerType& type, std::string name, StartAck ack)
      : linked_(ack.linked),
        type_(type),
        older_(ack.ancestors),
        call_caller_(ack.caller),
        call_reference_(ack.reference) {
    if (!name.empty()) margin().name = std::move(name);
  }

  void on_start() final;
  void on_message(Letter* letter) final;
  void on_coroutine_done() final;
  void on_idle_timeout() final;
  bool has_urgent_work() const override;
  void on_urgent_work() override;
  void on_exit() noexcept final;
  void answer_waiting() noexcept final;
  std::string_view label() const final { return type_.name; }
  const void* server_type() const final { return &type_; }
  Ancestors ancestors() const final { return {parent(), older_[0], older_[1], older_[2]}; }
  uint64_t linked_parent() const final { return linked_ ? parent() : 0; }
  std::string_view domain() const override { return "otp.gen_server"; }
  void stop_with(ExitReason reason) final { terminate_with(std::move(reason)); }
  bool stopping() const final { return deferred_stop_ || phase_ == Phase::terminating; }

  /// Before the process is spawned: a second name, in a registry.
  void set_via(std::shared_ptr<const ViaTarget> via) { margin().via = std::move(via); }

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
  /// Somebody answered this caller: nobody else has to.
  void answered(uint64_t reference);
  /// `letter` is what the next callback is given: kept until that has ended, for reports.
  void hold(Letter& letter) { held_ = &letter; }

 protected:
  // What only S knows.
  virtual void construct() = 0;                    // calls start_done or starts a coroutine
  virtual void dispatch_info(Letter* letter) = 0;  // handle_info of what no typed sender addressed
  virtual void dispatch_response(Letter* letter) { unhandled_info(letter); }
  virtual void dispatch_timeout() = 0;
  virtual void dispatch_continue(Letter* letter) = 0;
  virtual void run_terminate(const ExitReason& reason) = 0;  // calls terminated() or a coroutine
  virtual void destroy_server() noexcept = 0;
  virtual bool drops_expired() const = 0;
  /// The coroutine of a callback has ended, without an exception and without a stop.
  virtual void coroutine_done() {}
  virtual void run_hibernate() {}
  virtual void roll_back() noexcept = 0;  // the State as before the callback that failed

  void unhandled_info(Letter* letter);
  /// Runs `code`, which calls callbacks; with what they start the server is `handling`.
  template <class F>
  void handling(F code) {
    phase_ = Phase::handling;
    code();
    callback_done();
  }
  bool terminating() const { return phase_ == Phase::terminating; }
  const ServerType& type() const { return type_; }
  /// The caller has given up by now, and this server does not handle such calls.
  bool is_expired(int64_t deadline) const;
  void send_answer(Letter* letter);

 private:
  void handle(Letter* letter);
  void callback_done();
  void fault(std::exception_ptr thrown);
  void terminate_with(ExitReason reason);
  void acknowledge(Letter* letter);
  void fail_start(ExitReason reason, ExitReason answer, uint8_t flags);
  bool register_own_name();
  bool register_via();

  /// What only the start and the end need: a server that waits for messages has none.
  struct Margin {
    std::string name;                      // to register
    std::shared_ptr<const ViaTarget> via;  // to register
    ExitReason start_answer;               // of a failed start
    ExitReason stop_reason;
    std::exception_ptr fault;  // what left the callback that failed

    static void* operator new(size_t bytes) { return pool_allocate(bytes); }
    static void operator delete(void* memory, size_t bytes) { pool_free(memory, bytes); }
  };
  Margin& margin() {
    if (margin_ == nullptr) margin_ = std::make_unique<Margin>();
    return *margin_;
  }

  // In the order that leaves no gaps: a system may have millions of servers.
  const bool linked_;           // the starter is the parent, whose end ends the process
  bool deferred_stop_ = false;  // stop_reason holds once the callback's coroutine has ended
  uint8_t start_flags_ = 0;     // of a failed start's answer
  Phase phase_ = Phase::starting;
  const ServerType& type_;
  const std::array<uint64_t, 3> older_;  // ancestors before the parent
  // Who waits for an answer, 0 = nobody or answered: the starter, then that of the call being
  // handled.
  uint64_t call_caller_;
  uint64_t call_reference_;
  int64_t call_deadline_ = TimerWheel::kNever;
  Letter* held_ = nullptr;  // what the callback that runs was given
  OwnedLetter next_;        // for handle_continue
  std::unique_ptr<Margin> margin_;
};

template <class R, class T>
inline constexpr bool kIsCallResult =
    std::is_same_v<T, CallResult<R>> || std::is_same_v<T, CastResult> || std::is_same_v<T, Stop>;
template <class T>
inline constexpr bool kIsCastResult = std::is_void_v<T> || std::is_constructible_v<CastResult, T>;

/// `static constexpr bool rollback_on_exception = true;` in a server with a State.
template <class S>
inline constexpr bool kRollsBack = false;
template <class S>
  requires requires { S::rollback_on_exception; }
inline constexpr bool kRollsBack<S> = S::rollback_on_exception;

/// The State from before a callback, when the server wants it back after an exception.
template <class S, bool = kRollsBack<S>>
struct Snapshot {
  void take(const S&) {}
  void restore(S&) noexcept {}
};
template <class S>
struct Snapshot<S, true> {
  static_assert(HasState<S>, "rollback_on_exception needs a public member `State state_`");
  std::optional<typename S::State> before;
  void take(const S& server) { before.emplace(server.state_); }
  void restore(S& server) noexcept {
    if (before) server.state_ = std::move(*before);
    before.reset();
  }
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
    self.hold(letter);
    self.user([&] {
      self.before_.take(*self.server_);
      self.template call_handler<M>(letter.as<M>());
    });
  }
  template <class M>
  static void invoke_cast(Process& process, Letter& letter) {
    auto& self = static_cast<ServerProcess&>(process);
    self.hold(letter);
    if constexpr (CastHandler<S, M>) {
      self.user([&] {
        self.before_.take(*self.server_);
        self.follow_async([&] { return self.server_->handle_cast(std::move(letter.as<M>())); });
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
          Returned waiting = server_->init();
          LibraryScope scope(env());
          start_coroutine(finish_init(*this, std::move(waiting)));
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
    LibraryScope scope(env());
    self.start_done(std::move(done.step));
  }

  template <class M>
  void call_handler(M& message) {
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
      hold(*letter);
      user([&] {
        before_.take(*server_);
        follow_async([&] { return server_->handle_info(move_message<M>(*this, *letter)); });
      });
    } else {
      unhandled_info(letter);
    }
  }
  void dispatch_response(Letter* letter) override {
    if constexpr (InfoHandler<S, Response>) {
      hold(*letter);
      user([&] {
        before_.take(*server_);
        follow_async([&] { return server_->handle_info(Response{letter}); });
      });
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
      user([&] {
        before_.take(*server_);
        follow_async([&] { return server_->handle_info(IdleTimeout()); });
      });
    }
  }

  template <class C>
  bool try_continue(Letter* letter) {
    if constexpr (ContinueHandler<S, C>) {
      if (letter->operation->type != &message_type<C>) return false;
      hold(*letter);
      user([&] {
        before_.take(*server_);
        follow_async([&] { return server_->handle_continue(std::move(letter->as<C>())); });
      });
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
    hold(*letter);
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

  void run_hibernate() override {
    if constexpr (HasHibernate<S>) user([&] { server_->hibernate(); });
  }
  void roll_back() noexcept override { before_.restore(*server_); }
  void print_state(BoundedWriter& out) override {
    UserScope scope(env());
    if (!server_) {
      out.write("(init has not finished)");
    } else if constexpr (FormatsStatus<S>) {
      std::as_const(*server_).format_status(out);
    } else if constexpr (HasState<S>) {
      format_value(out, server_->state_);
    } else {
      out.write('(').write(why_no_state()).write(')');
    }
  }
  std::string why_no_state() const override {
    if constexpr (FormatsStatus<S> || HasState<S>) return {};
    return std::string(type_name<S>()) + " has no public member `State state_`";
  }
  void* state_of(const void* type) override {
    if constexpr (HasState<S>) {
      if (server_ && type == &state_type<typename S::State>) return &server_->state_;
    }
    return nullptr;
  }

  std::optional<Arguments> arguments_;
  std::optional<S> server_;
  [[no_unique_address]] Snapshot<S> before_;
};

}  // namespace otp::internal
