#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "otp/async/async.h"
#include "otp/base/result.h"
#include "otp/base/timeout.h"
#include "otp/runtime/system_impl.h"

/// Processes: spawn, send, receive, links, monitors, names, timers. What erlang:* and Process do.
///
/// Everything here is called from inside a process (an Async run by otp::spawn or a server's
/// callback); threads outside use the methods of otp::System. Nothing here blocks a thread.
namespace otp {

// ---- Messages that the runtime makes

/// A monitored process ended. OTP: {'DOWN', Ref, process, Pid or {Name,Node}, Reason}.
struct Down {
  Reference reference;
  Pid pid;  ///< nobody when the monitor was made by name
  ExitReason reason;
  std::string name{};  ///< when the monitor was made by name, else empty
  Term tag{};          ///< what MonitorOptions::tag said
};

/// A linked process ended, or somebody sent an exit signal, and this process traps exits.
/// OTP: {'EXIT', Pid, Reason}. (Named so because otp::Exit is the exception.)
struct ExitMessage {
  Pid from;
  ExitReason reason;
};

// ---- This process

/// The pid of the calling process.
Pid self();

/// Makes exit signals arrive as ExitMessage instead of ending this process; returns what was set
/// before. OTP: process_flag(trap_exit, Bool).
bool trap_exit(bool on);

/// A reference that is unique in the System. OTP: make_ref/0.
Reference make_ref();

/// Ends the calling process with `reason` by throwing otp::Exit. OTP: exit/1.
[[noreturn]] void exit(ExitReason reason);

/// Sends an exit signal to `pid`. `kill` cannot be trapped; a dead pid is no error. OTP: exit/2.
void exit(Pid pid, ExitReason reason);

bool is_alive(Pid pid);

// ---- Links and monitors

/// Ties the two processes: when one ends, the other gets an exit signal with the reason. Linking to
/// a dead process gives the exit signal `noproc`. At most one link per pair. OTP: link/1.
void link(Pid pid);
/// Removes the link. Once it has returned, no exit signal of `pid` through the link has any effect,
/// and none is added to the mailbox; what is queued already stays. OTP: unlink/1.
void unlink(Pid pid);
/// One Down when `pid` ends, at once with `noproc` if there is no such process. OTP: monitor/2.
Reference monitor(Pid pid);
/// The same by registered name; Down::name is the name. OTP: monitor(process, Name).
Reference monitor(std::string_view name);
/// How long the alias that comes with a monitor lives. OTP: the values of monitor's alias option.
enum class MonitorAlias : uint8_t {
  none,
  explicit_unalias,  ///< until unalias()
  demonitor,         ///< until the monitor is gone: demonitor() or its Down
  reply_demonitor,   ///< as demonitor, or until a message came through it, which ends the monitor
};
struct MonitorOptions {
  MonitorAlias alias = MonitorAlias::none;  ///< then Alias{self(), reference} is one
  Term tag{};                               ///< given back as Down::tag
};
/// OTP: monitor/3. The tag stands in Down::tag, as a C++ message has a type and not a marker.
Reference monitor(Pid pid, MonitorOptions options);
/// Stops the monitor; with `flush` also removes its Down from the mailbox. False: it was not active
/// (fired, removed, or somebody else's). OTP: demonitor/2.
bool demonitor(Reference reference, bool flush = false);

// ---- Aliases

/// A second address of a process that can be closed: what is sent to it afterwards is dropped.
/// Plain data. OTP: the reference that alias/0 returns (which knows its process).
struct Alias {
  Pid owner{};
  Reference reference{};
  friend bool operator==(const Alias&, const Alias&) = default;
};
enum class AliasMode : uint8_t {
  explicit_unalias,  ///< until unalias()
  reply,             ///< until the first message came through it
};
/// Opens an alias of the calling process. OTP: alias/0,1.
Alias alias(AliasMode mode = AliasMode::explicit_unalias);
/// Closes it; what came through it already stays in the mailbox. False, and nothing changes: it is
/// another process's, or closed. OTP: unalias/1.
bool unalias(const Alias& alias);

// ---- Names

/// Gives a living process a local name. False, and nothing changes: the name is taken or
/// `undefined`, the process is dead or has a name already. OTP: register/2 (badarg there).
bool register_name(std::string_view name, Pid pid);
/// False: nobody has the name.
bool unregister_name(std::string_view name);
/// The process with this name, or none. OTP: whereis/1.
std::optional<Pid> whereis(std::string_view name);

// ---- Sending

/// What sending returns. Ignoring it is allowed and never waits; `co_await` it in a loop of many
/// sends: then the sender gives others their turn as soon as what it sent outweighs its share, so
/// that queues stay short.
class Sent {
 public:
  bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) const {
    suspend();
  }
  void await_resume() const noexcept {}

 private:
  void suspend() const;
};

namespace internal {

void deliver_message(Pid target, Letter* letter);
/// `noproc` or {mailbox_full,Pid} when a message to `target` would be dropped as things stand.
std::optional<ExitReason> why_not_taken(Pid target);
Pid whereis_or_nobody(std::string_view name);

/// Sends `letter` through an alias.
void deliver_aliased(const Alias& alias, Letter* letter);
/// What a letter of kind `down` says.
Down down_in(const Process& process, Letter& letter);

/// The value of a message of type M that `letter` carries.
template <class M>
M take_message(Process& process, Letter* letter) {
  if constexpr (std::is_same_v<M, Down>) {
    Down down = down_in(process, *letter);
    if (!down.name.empty()) (void)process.take_monitored_name(letter->reference);
    process.consume(letter);
    return down;
  } else if constexpr (std::is_same_v<M, ExitMessage>) {
    ExitMessage message{Pid{0, letter->sender}, std::move(letter->as<ExitReason>())};
    process.consume(letter);
    return message;
  } else {
    M message = std::move(letter->as<M>());
    process.consume(letter);
    return message;
  }
}

/// The same, for a letter that is kept: what is cheap to copy stays in it.
template <class M>
M move_message(Process& process, Letter& letter) {
  if constexpr (std::is_same_v<M, Down>) {
    Down down = down_in(process, letter);
    if (!down.name.empty()) (void)process.take_monitored_name(letter.reference);
    return down;
  } else if constexpr (std::is_same_v<M, ExitMessage>) {
    return ExitMessage{Pid{0, letter.sender}, letter.as<ExitReason>()};
  } else {
    return std::move(letter.as<M>());
  }
}

template <class M>
bool is_message(const Letter& letter) {
  if constexpr (std::is_same_v<M, Down>) {
    return letter.kind == LetterKind::down;
  } else if constexpr (std::is_same_v<M, ExitMessage>) {
    return letter.kind == LetterKind::exit || letter.kind == LetterKind::link_exit;
  } else {
    return letter.kind == LetterKind::message && letter.operation->type == &message_type<M>;
  }
}

}  // namespace internal

/// Sends a plain message to a process. Never blocks, never fails; a dead receiver drops it. OTP:
/// Pid ! M.
template <class M>
Sent send(Pid target, M message) {
  using namespace internal;
  LibraryScope scope(env());
  deliver_message(target,
                  make_letter<M>(LetterKind::message, plain_operation<M>, std::move(message)));
  return Sent();
}

/// A registered name on a node: an address for send(). OTP: {Name, Node}.
struct NameAt {
  std::string name;
  uint64_t node = 0;  ///< 0 = this node
};

/// Sends a plain message to the process with a local name. Errors: throws Exit {badarg,Name} when
/// nobody has it; a name that may be absent is a NameAt. OTP: Name ! M.
template <class M>
Sent send(std::string_view name, M message) {
  const std::optional<Pid> target = whereis(name);
  if (!target) throw Exit(ExitReason::tagged("badarg", Term::atom(std::string(name))));
  return send(*target, std::move(message));
}
/// The same to a name on a node, dropped when nobody has it. OTP: {Name, Node} ! M.
template <class M>
Sent send(const NameAt& address, M message) {
  const std::optional<Pid> target = whereis(address.name);
  if (address.node != 0 || !target) return Sent();
  return send(*target, std::move(message));
}

/// The same through an alias: dropped when that is closed. OTP: Alias ! M.
template <class M>
Sent send(const Alias& alias, M message) {
  using namespace internal;
  LibraryScope scope(env());
  deliver_aliased(alias,
                  make_letter<M>(LetterKind::aliased, plain_operation<M>, std::move(message)));
  return Sent();
}

// ---- Receiving

/// The longest time that a receive waits. OTP: receive … after T. Zero: look at what is there, no
/// more.
struct After {
  Timeout timeout;
};
inline After after(Timeout timeout) { return After{timeout}; }

namespace internal {

template <class... M>
using ReceivedOf =
    typename std::conditional_t<sizeof...(M) == 1,
                                std::type_identity<std::tuple_element_t<0, std::tuple<M...>>>,
                                std::type_identity<std::variant<M...>>>::type;

/// The part of every receive that does not depend on the types.
class ReceiveBase : public Receiver {
 protected:
  explicit ReceiveBase(Timeout timeout) : timeout_(timeout) {}
  bool ready();
  void suspend();
  /// Throws what a predicate threw.
  void finish();
  Letter* letter_ = nullptr;

 private:
  void fail(std::exception_ptr thrown) noexcept final { thrown_ = std::move(thrown); }

  Timeout timeout_;
  std::exception_ptr thrown_;
};

template <class Predicate, class... M>
class Receive final : ReceiveBase {
 public:
  using Value = ReceivedOf<M...>;
  Receive(Timeout timeout, Predicate predicate)
      : ReceiveBase(timeout), predicate_(std::move(predicate)) {}

  bool await_ready() { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  std::optional<Value> take() {
    finish();
    if (letter_ == nullptr) return std::nullopt;
    std::optional<Value> value;
    (void)((is_message<M>(*letter_)
                ? (value.emplace(take_message<M>(self_process(), letter_)), true)
                : false) ||
           ...);
    return value;
  }

 private:
  bool accepts(Letter& letter) override {
    return ((is_message<M>(letter) && matches<M>(letter)) || ...);
  }
  template <class T>
  bool matches(Letter& letter) {
    if constexpr (std::is_same_v<Predicate, std::nullptr_t>) {
      return true;
    } else if constexpr (std::is_same_v<T, Down>) {
      return ask(down_in(self_process(), letter));
    } else if constexpr (std::is_same_v<T, ExitMessage>) {
      return ask(ExitMessage{Pid{0, letter.sender}, letter.as<ExitReason>()});
    } else {
      return ask(std::as_const(letter.as<T>()));
    }
  }
  template <class Message>
  bool ask(const Message& message) {
    UserScope user(env());
    return predicate_(message);
  }
  Predicate predicate_;
};

/// Waits without limit: the result is the message itself.
template <class Predicate, class... M>
struct ReceiveAlways {
  Receive<Predicate, M...> receive;
  bool await_ready() { return receive.await_ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    receive.await_suspend(handle);
  }
  typename Receive<Predicate, M...>::Value await_resume() { return std::move(*receive.take()); }
};

template <class Predicate, class... M>
struct ReceiveWithin {
  Receive<Predicate, M...> receive;
  bool await_ready() { return receive.await_ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    receive.await_suspend(handle);
  }
  std::optional<typename Receive<Predicate, M...>::Value> await_resume() { return receive.take(); }
};

}  // namespace internal

/// Takes the oldest message of type M (of one of the types M..., then a std::variant) from the
/// mailbox, waiting for it; all others keep their place and order. OTP: receive.
///
///     Ping ping = co_await otp::receive<Ping>();
///     auto some = co_await otp::receive<Ping, Down>(otp::after(5s));   // optional<variant<Ping,
///     Down>>
template <class... M>
auto receive() {
  return internal::ReceiveAlways<std::nullptr_t, M...>{{infinity, nullptr}};
}
/// With a limit: std::nullopt when no such message came within it. Never ends early.
template <class... M>
auto receive(After limit) {
  return internal::ReceiveWithin<std::nullptr_t, M...>{{limit.timeout, nullptr}};
}
/// Only messages for which `predicate(const M&)` is true. It runs in this process, for each message
/// once, also for those that come while the receive waits; what it throws leaves the receive, and
/// the message stays.
template <class M, class Predicate>
  requires std::is_invocable_r_v<bool, Predicate, const M&>
auto receive(Predicate predicate) {
  return internal::ReceiveAlways<Predicate, M>{{infinity, std::move(predicate)}};
}
template <class M, class Predicate>
  requires std::is_invocable_r_v<bool, Predicate, const M&>
auto receive(Predicate predicate, After limit) {
  return internal::ReceiveWithin<Predicate, M>{{limit.timeout, std::move(predicate)}};
}

/// Lets other processes run. OTP: erlang:yield/0.
class Yield {
 public:
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) const {
    suspend();
  }
  void await_resume() const noexcept {}

 private:
  void suspend() const;
};
inline Yield yield() { return Yield(); }

/// Waits; exit signals act meanwhile. OTP: timer:sleep/1.
class Sleep {
 public:
  explicit Sleep(Timeout time) : time_(time) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) const {
    suspend();
  }
  void await_resume() const { finish(); }

 private:
  void suspend() const;
  void finish() const;
  Timeout time_;
};
inline Sleep sleep(Timeout time) { return Sleep(time); }

// ---- Spawning

namespace internal {

/// A process whose body is one coroutine.
class PlainProcess : public Process {
 public:
  void on_start() override;
  void on_message(Letter*) override;
  void on_coroutine_done() override;
  std::string_view label() const override { return "plain process"; }

 protected:
  virtual Async<void> body() = 0;
};

template <class F, class... A>
class FunctionProcess final : public PlainProcess {
 public:
  explicit FunctionProcess(F function, A... arguments)
      : function_(std::move(function)), arguments_(std::move(arguments)...) {}

 private:
  Async<void> body() override {
    using Returned = std::invoke_result_t<F&, A...>;
    if constexpr (std::is_same_v<Returned, Async<void>>) {
      return std::apply([this](A&... a) { return std::invoke(function_, std::move(a)...); },
                        arguments_);
    } else {
      return run(*this);
    }
  }
  static Async<void> run(FunctionProcess& process) {
    std::apply([&](A&... a) { std::invoke(process.function_, std::move(a)...); },
               process.arguments_);
    co_return;
  }
  F function_;
  std::tuple<A...> arguments_;
};

struct SpawnTies {
  bool link = false;
  bool monitor = false;
};
struct Spawned {
  Pid pid;
  Reference monitor;
};
Spawned spawn_process(std::unique_ptr<Process> body, SpawnTies ties);

template <class F, class... A>
std::unique_ptr<Process> make_function_process(F function, A... arguments) {
  static_assert(std::is_invocable_v<F&, A...>,
                "the function cannot be called with these arguments");
  return std::make_unique<FunctionProcess<F, A...>>(std::move(function), std::move(arguments)...);
}

}  // namespace internal

/// Starts a process that runs `function(arguments...)`, which returns Async<void>, or void if it
/// never waits. Its exit reason is `normal` when it returns, {Exception,Stack} when an exception
/// leaves it. Arguments are moved into the process. A capturing lambda is safe here: the function
/// object lives as long as the process. OTP: spawn/3.
template <class F, class... A>
Pid spawn(F function, A... arguments) {
  return internal::spawn_process(
             internal::make_function_process(std::move(function), std::move(arguments)...), {})
      .pid;
}
/// Also links the two, in one step: an exit of the new process is never missed. OTP: spawn_link/3.
template <class F, class... A>
Pid spawn_link(F function, A... arguments) {
  return internal::spawn_process(
             internal::make_function_process(std::move(function), std::move(arguments)...),
             {.link = true})
      .pid;
}
/// Also monitors it, in one step. OTP: spawn_monitor/3.
template <class F, class... A>
std::pair<Pid, Reference> spawn_monitor(F function, A... arguments) {
  auto spawned = internal::spawn_process(
      internal::make_function_process(std::move(function), std::move(arguments)...),
      {.monitor = true});
  return {spawned.pid, spawned.monitor};
}

// ---- Timers

/// A timer that will send a message. Weak, plain data.
struct TimerRef {
  uint64_t id = 0;
  uint16_t core = 0;
  Reference reference{};  ///< of start_timer, which its message carries; else none
};

/// Sends `message` to `target` once `time` has passed, never before. The timer goes when the target
/// ends. OTP: erlang:send_after/3.
template <class M>
TimerRef send_after(Timeout time, Pid target, M message);

/// What the message of start_timer arrives in. OTP: {timeout, TimerRef, Msg}.
template <class M>
struct TimerExpired {
  Reference timer;  ///< TimerRef::reference
  M message;
};

/// send_after() whose message says which timer sent it: `target` gets TimerExpired<M>. For code
/// that cancels a timer and must know a message that was on its way. OTP: erlang:start_timer/3.
template <class M>
TimerRef start_timer(Timeout time, Pid target, M message) {
  const Reference reference = make_ref();
  TimerRef timer = send_after(time, target, TimerExpired<M>{reference, std::move(message)});
  timer.reference = reference;
  return timer;
}

/// Stops the timer. The time that was left, or nullopt if it has fired or was cancelled: then its
/// message may be in the mailbox. OTP: erlang:cancel_timer/1.
std::optional<Duration> cancel_timer(TimerRef timer);
/// The time left, without touching the timer. OTP: erlang:read_timer/1.
std::optional<Duration> read_timer(TimerRef timer);

namespace internal {
TimerRef arm_message(Timeout time, Pid target, Letter* letter);
}

template <class M>
TimerRef send_after(Timeout time, Pid target, M message) {
  using namespace internal;
  LibraryScope scope(env());
  return arm_message(time, target,
                     make_letter<M>(LetterKind::message, plain_operation<M>, std::move(message)));
}

}  // namespace otp
