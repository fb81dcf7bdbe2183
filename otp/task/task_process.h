#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "otp/async/async.h"
#include "otp/base/shareable.h"
#include "otp/runtime/runtime.h"

namespace otp {

/// The result of a task as a message, for an owner that does not await it: a server takes it in
/// handle_info(TaskReply<T>), as it takes the Down of a task that failed. Tell tasks apart by
/// `reference`. OTP: {Ref, Result}.
template <class T>
struct TaskReply {
  Reference reference;
  T value;
};
template <>
struct TaskReply<void> {
  Reference reference;
};

namespace internal {

/// What a function returns, once awaited.
template <class R>
struct TaskReturn {
  using Type = R;
  static constexpr bool waits = false;
};
template <class R>
struct TaskReturn<Async<R>> {
  using Type = R;
  static constexpr bool waits = true;
};
template <class F, class... A>
using TaskValue = typename TaskReturn<std::invoke_result_t<F&, A...>>::Type;

/// The process of a task: runs one function and ends.
///
/// Its last letter goes to its owner when the process is gone: a `result`, which stands for DOWN
/// and EXIT, if the function returned, else a DOWN. So a task costs its owner one letter, and an
/// owner that has the result knows that the task's slot, name and memory are free.
class TaskProcess : public Process {
 public:
  TaskProcess() = default;
  ~TaskProcess() override;
  void on_start() final {
    if (!held_) run_task();
  }
  void on_message(Letter* letter) final;
  void answer_waiting() noexcept final;
  std::string_view label() const final { return "task"; }

  void set_owner(uint64_t owner, uint64_t reference) {
    owner_ = owner;
    reference_ = reference;
  }
  /// It waits for release_task() before it runs.
  void hold() { held_ = true; }

 protected:
  virtual void run_task() = 0;
  bool is_awaited() const { return reference_ != 0; }
  uint64_t reference() const { return reference_; }
  /// The function returned; `result`: null when nobody awaits it.
  void finish(Letter* result);
  void fail(std::exception_ptr thrown);

 private:
  uint64_t owner_ = 0;
  uint64_t reference_ = 0;  // the owner's monitor, 0 = none
  Letter* result_ = nullptr;
  bool held_ = false;
};

/// Lets a held task run. Its owner may have unlinked it before.
void release_task(Pid task);

template <class F, class... A>
class FunctionTask final : public TaskProcess {
  using Return = TaskReturn<std::invoke_result_t<F&, A...>>;
  using T = typename Return::Type;

 public:
  template <class... B>
  explicit FunctionTask(F function, B&&... arguments)
      : work_(std::in_place, std::move(function), std::forward<B>(arguments)...) {}

  void run_task() override {
    if constexpr (Return::waits) {
      guarded([this] { body_ = call(); });
      if (body_) body_.start(driver());
    } else if (Letter* result = nullptr;
               guarded([&] { result = letter_of([this]() -> T { return call(); }); })) {
      finish(result);
    }
  }
  void on_coroutine_done() override {
    if constexpr (Return::waits) {
      Letter* result = nullptr;
      if (guarded([&] {
            Async<T> body = std::move(body_);
            result = letter_of([&body]() -> T { return body.take(); });
          })) {
        finish(result);
      }
    }
  }
  void on_exit() noexcept override {
    UserScope user(env());
    work_.reset();
  }

 private:
  auto call() {
    return std::apply(
        [](F& function, A&... a) -> decltype(auto) {
          return std::invoke(function, std::move(a)...);
        },
        *work_);
  }
  /// Runs `code` as user code; false: it threw, and the process ends with that.
  template <class Code>
  bool guarded(Code&& code) {
    std::exception_ptr thrown;
    {
      UserScope user(env());
      try {
        code();
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    if (thrown != nullptr) fail(std::move(thrown));
    return thrown == nullptr;
  }
  template <class Code>
  Letter* letter_of(Code&& code) {
    using Reply = TaskReply<T>;
    if constexpr (std::is_void_v<T>) {
      code();
      if (!is_awaited()) return nullptr;
      return make_letter<Reply>(LetterKind::result, plain_operation<Reply>,
                                Reply{Reference{0, reference()}});
    } else {
      T value = code();
      if (!is_awaited()) return nullptr;
      return make_letter<Reply>(LetterKind::result, plain_operation<Reply>,
                                Reply{Reference{0, reference()}, std::move(value)});
    }
  }

  struct Nothing {};
  std::optional<std::tuple<F, A...>> work_;
  [[no_unique_address]] std::conditional_t<Return::waits, Async<T>, Nothing> body_;
};

template <class F, class... A>
std::unique_ptr<TaskProcess> make_task(F function, A... arguments) {
  static_assert(std::is_invocable_v<F&, A...>,
                "the task's function cannot be called with these arguments");
  using T = TaskValue<F, A...>;
  if constexpr (!std::is_void_v<T>) require_shareable<T>();
  return std::make_unique<FunctionTask<F, A...>>(std::move(function), std::move(arguments)...);
}

/// How a task is tied to the process that starts it, its owner.
struct TaskTies {
  bool link = true;
  bool quiet = false;          // see ChildTies
  ResultSink* sink = nullptr;  // see ChildTies
};

/// Starts `body` with the calling process as its owner. Throws Exit `system_limit`.
Spawned spawn_task(std::unique_ptr<TaskProcess> body, const TaskTies& ties);

}  // namespace internal
}  // namespace otp
