#pragma once

#include <chrono>
#include <coroutine>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "otp/async/async.h"
#include "otp/base/enum_names.h"
#include "otp/base/result.h"
#include "otp/runtime/runtime.h"
#include "otp/supervision/child_spec_types.h"
#include "otp/task/async_stream.h"
#include "otp/task/task_process.h"

/// Task: one function in a process of its own, and its result.
///
///     auto price = otp::Task::async(fetch_price, sku);   // runs from here on
///     int rate = co_await fetch_rate();                  // meanwhile
///     int total = rate * co_await price.await();
///
/// The function returns T or Async<T>; its arguments are moved into the task. A task is linked to
/// its owner, the process that started it: if one fails, the other does. Only the owner may await.
/// Whatever the outcome, nothing of an awaited task stays in the owner's mailbox.
///
/// A task that nobody awaits is Task::start_link. For many, use Task::async_stream; for tasks whose
/// failure must not take the owner along, a TaskSupervisor (task_supervisor.h). Not for code that
/// blocks its thread: that is otp::blocking. OTP: Elixir's Task.
namespace otp {

namespace internal {

/// The handle of a task: what does not depend on its type.
class TaskBase {
 public:
  TaskBase(TaskBase&& other) noexcept { take_over(other); }
  TaskBase& operator=(TaskBase&& other) noexcept;
  ~TaskBase() {
    if (state_ == State::running) forget();
  }

  /// The default Pid for Task::completed.
  Pid pid() const { return pid_; }
  /// The `reference` of its TaskReply or Down, for an owner that takes them as messages.
  Reference reference() const { return reference_; }
  Pid owner() const { return owner_; }

 protected:
  enum class State : uint8_t { spent, running, completed };

  explicit TaskBase(State state) : owner_(self()), state_(state) {}
  TaskBase(const Spawned& spawned, bool linked)
      : pid_(spawned.pid),
        reference_(spawned.monitor),
        owner_(self()),
        state_(State::running),
        linked_(linked) {}

  void require_owner(const char* what) const;
  bool completed() const { return state_ == State::completed; }
  void spend() { state_ = State::spent; }
  /// Nothing of the task will reach the mailbox any more; it goes on.
  void forget() noexcept;
  void unlink_quietly();
  /// The task's last letter if it is there.
  Letter* look();
  /// The reason in a DOWN; takes the letter.
  ExitReason reason_of_down(Letter* down);
  /// Ends the task. Its result or DOWN; null: it was running and ended as asked.
  Async<Letter*> end(Shutdown how);

 private:
  friend class TaskWait;
  void take_over(TaskBase& other) noexcept;

  Pid pid_;
  Reference reference_;
  Pid owner_;
  State state_;
  bool linked_ = false;
};

/// Waits for the last letter of a task.
class TaskWait : public ReceiveBase {
 public:
  TaskWait(TaskBase& task, Timeout timeout, const char* what)
      : ReceiveBase(timeout), task_(task), timeout_(timeout), what_(what) {}
  bool await_ready() { return task_.state_ == TaskBase::State::completed || ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  /// Null: it did not come in time.
  Letter* await_resume() {
    if (!task_.completed()) finish();
    return letter_;
  }

 protected:
  [[noreturn]] void give_up(ExitReason reason);
  Letter* letter() { return await_resume(); }
  ExitReason down() { return task_.reason_of_down(letter_); }
  void forget() { task_.forget(); }
  void spend() { task_.spend(); }

 private:
  bool accepts(Letter& letter) override;
  TaskBase& task_;
  const Timeout timeout_;
  const char* const what_;
};

/// The value in a result; takes the letter.
template <class T>
T take_task_value(Letter* letter) {
  if constexpr (std::is_void_v<T>) {
    self_process().consume(letter);
  } else {
    T value = std::move(letter->as<TaskReply<T>>().value);
    self_process().consume(letter);
    return value;
  }
}
template <class T>
Result<T> take_task_result(Letter* letter) {
  if constexpr (std::is_void_v<T>) {
    take_task_value<T>(letter);
    return {};
  } else {
    return take_task_value<T>(letter);
  }
}

/// A moment from which on nobody waits.
class Deadline {
 public:
  explicit Deadline(Timeout timeout);
  Timeout left() const;

 private:
  int64_t at_;
};

}  // namespace internal

/// A task: its owner's handle. Dropping it forgets the result; the task goes on, linked.
template <class T>
class [[nodiscard]] TaskOf : public internal::TaskBase {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  /// Waits for the result.
  ///
  /// Errors: throws Exit {Reason,{task,await,[Ref,Timeout]}}: `timeout`, and the task goes on but
  ///         its result reaches nobody; or, to an owner that traps exits or is not linked, the
  ///         reason with which the task ended. Throws std::invalid_argument in another process.
  /// OTP:    Task.await/2. Differs: an owner that traps exits finds no EXIT message of the task.
  auto await(Timeout timeout = std::chrono::seconds(5)) { return await_as("await", timeout); }

  /// Waits, and may be asked again: nullopt when the task still runs; its value; or the reason with
  /// which it ended. OTP: Task.yield/2.
  auto yield(Timeout timeout = std::chrono::seconds(5)) {
    require_owner("yield");
    return Yielding(*this, timeout);
  }

  /// Ends the task and waits until it is gone: nullopt if it was running and did as told, its value
  /// or its reason if it had ended, `killed` if it had to be killed after the time. Unlinks first.
  /// OTP: Task.shutdown/2.
  Async<std::optional<Result<T>>> shutdown(Shutdown how = std::chrono::seconds(5)) {
    require_owner("shutdown");
    return shut_down(how);
  }

  /// Lets the task go: unlinked, and nothing of it reaches the owner. Its value or reason if it has
  /// ended already. OTP: Task.ignore/1.
  std::optional<Result<T>> ignore() {
    require_owner("ignore");
    if (completed()) return take_completed();
    if (internal::Letter* letter = look()) return outcome(letter);
    unlink_quietly();
    forget();
    return std::nullopt;
  }

 private:
  friend class Task;
  friend class TaskSupervisor;
  TaskOf(const internal::Spawned& spawned, bool linked) : TaskBase(spawned, linked) {}
  explicit TaskOf(Value value) : TaskBase(State::completed), value_(std::move(value)) {}

  class Awaiting : public internal::TaskWait {
   public:
    Awaiting(TaskOf& task, Timeout timeout, const char* what)
        : TaskWait(task, timeout, what), task_(task) {}
    T await_resume() {
      if (task_.completed()) return task_.take_value();
      internal::Letter* letter = this->letter();
      if (letter == nullptr) {
        forget();
        give_up(ExitReason::timeout());
      }
      if (letter->kind == internal::LetterKind::down) give_up(down());
      spend();
      return internal::take_task_value<T>(letter);
    }

   private:
    TaskOf& task_;
  };

  class Yielding : public internal::TaskWait {
   public:
    Yielding(TaskOf& task, Timeout timeout) : TaskWait(task, timeout, "yield"), task_(task) {}
    std::optional<Result<T>> await_resume() {
      if (task_.completed()) return task_.take_completed();
      internal::Letter* letter = this->letter();
      if (letter == nullptr) return std::nullopt;
      return task_.outcome(letter);
    }

   private:
    TaskOf& task_;
  };

  Awaiting await_as(const char* what, Timeout timeout) {
    require_owner(what);
    return Awaiting(*this, timeout, what);
  }
  Result<T> outcome(internal::Letter* letter) {
    if (letter->kind == internal::LetterKind::down) return reason_of_down(letter);
    spend();
    return internal::take_task_result<T>(letter);
  }
  T take_value() {
    spend();
    if constexpr (!std::is_void_v<T>) return std::move(*value_);
  }
  Result<T> take_completed() {
    if constexpr (std::is_void_v<T>) {
      take_value();
      return {};
    } else {
      return take_value();
    }
  }
  Async<std::optional<Result<T>>> shut_down(Shutdown how) {
    if (completed()) co_return take_completed();
    internal::Letter* letter = co_await end(how);
    if (letter == nullptr) co_return std::nullopt;
    co_return outcome(letter);
  }

  std::optional<Value> value_;
};

/// What becomes of the tasks that are late: nothing, and they can be asked again; they are ignored;
/// or they are killed.
enum class OnLate { nothing, ignore, kill_task };

struct YieldManyOptions {
  Timeout timeout = std::chrono::seconds(5);  ///< for all of them together
  OnLate on_timeout = OnLate::nothing;
};

/// Starts tasks. OTP: the functions of Elixir's module Task.
class Task {
 public:
  /// Starts `function(arguments...)` in a process that is linked to this one, to be awaited.
  /// OTP: Task.async/1,3.
  template <class F, class... A>
  static auto async(F function, A... arguments) {
    using T = internal::TaskValue<F, A...>;
    return TaskOf<T>(
        internal::spawn_task(internal::make_task(std::move(function), std::move(arguments)...), {}),
        true);
  }

  /// A task that has ended with `value`; no process is involved. OTP: Task.completed/1.
  template <class T>
  static TaskOf<T> completed(T value) {
    return TaskOf<T>(std::move(value));
  }

  /// Starts a function whose result nobody wants: with a link, or without. OTP: Task.start_link/1,
  /// Task.start/1.
  template <class F, class... A>
  static Pid start_link(F function, A... arguments) {
    return internal::spawn_process(
               internal::make_task(std::move(function), std::move(arguments)...), {.link = true})
        .pid;
  }
  template <class F, class... A>
  static Pid start(F function, A... arguments) {
    return internal::spawn_process(
               internal::make_task(std::move(function), std::move(arguments)...), {})
        .pid;
  }

  /// Waits for all of them, `timeout` in total: the values in the order of the tasks. The first
  /// that fails or is late throws as await() does. OTP: Task.await_many/2.
  template <class T>
  static Async<std::vector<T>> await_many(std::vector<TaskOf<T>> tasks,
                                          Timeout timeout = std::chrono::seconds(5)) {
    internal::Deadline deadline(timeout);
    std::vector<T> values;
    values.reserve(tasks.size());
    for (TaskOf<T>& task : tasks) {
      values.push_back(co_await task.await_as("await_many", deadline.left()));
    }
    co_return values;
  }
  static Async<void> await_many(std::vector<TaskOf<void>> tasks,
                                Timeout timeout = std::chrono::seconds(5)) {
    internal::Deadline deadline(timeout);
    for (TaskOf<void>& task : tasks) {
      co_await task.await_as("await_many", deadline.left());
    }
  }

  /// Waits until all have ended or the time is over: one outcome for each task in their order, as
  /// yield() gives it. OTP: Task.yield_many/2.
  template <class T>
  static Async<std::vector<std::optional<Result<T>>>> yield_many(std::vector<TaskOf<T>>& tasks,
                                                                 YieldManyOptions options = {}) {
    internal::Deadline deadline(options.timeout);
    std::vector<std::optional<Result<T>>> outcomes;
    outcomes.reserve(tasks.size());
    for (TaskOf<T>& task : tasks) outcomes.push_back(co_await task.yield(deadline.left()));
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (outcomes[i].has_value()) continue;
      if (options.on_timeout == OnLate::ignore) outcomes[i] = tasks[i].ignore();
      if (options.on_timeout == OnLate::kill_task) {
        outcomes[i] = co_await tasks[i].shutdown(Shutdown::brutal_kill);
      }
    }
    co_return outcomes;
  }

  /// Calls `function` with each item of `source`, each in a linked task of its own, some at a time.
  /// The manual is async_stream.h. Throws std::invalid_argument for a max_concurrency below 1.
  /// OTP: Task.async_stream/3.
  template <class S, class F>
  static AsyncStream<S, F> async_stream(S source, F function, AsyncStreamOptions options = {}) {
    return AsyncStream<S, F>(std::move(source), std::move(function), options);
  }
};

}  // namespace otp
