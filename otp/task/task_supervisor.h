#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/supervision/dynamic_supervisor.h"
#include "otp/task/task.h"

/// TaskSupervisor: tasks as children, so that somebody knows of them and stops them in order.
///
///     auto sup = (co_await otp::TaskSupervisor::start_link()).or_exit();
///     auto page = co_await otp::TaskSupervisor::async_nolink(sup, fetch, url);
///     auto outcome = co_await page.yield(2s);     // a failure is a value here, the owner lives
///
/// It is a DynamicSupervisor: children_max bounds the tasks, a task that ended is forgotten, and
/// stopping it stops them all. A task without link that is not awaited tells its owner by a
/// message: TaskReply<T>, or Down. OTP: Elixir's Task.Supervisor.
namespace otp {

using TaskSupervisorSpec = DynamicSupervisorSpec;
using TaskSupervisorRef = DynamicSupervisorRef;

/// How start_child's task is supervised. OTP: the options of Task.Supervisor.start_child.
struct TaskChildOptions {
  Restart restart = Restart::temporary;
  Shutdown shutdown = std::chrono::seconds(5);
};

namespace internal {

/// Puts a held task of this process under `supervisor`, and lets it run. Throws Exit when the
/// supervisor refuses it or is gone; then the task is gone too.
class Adopt {
 public:
  static constexpr bool kAdopts = true;
  Adopt(TaskSupervisorRef supervisor, bool link)
      : supervisor_(std::move(supervisor)), link_(link) {}
  Async<void> operator()(Pid task) const;

 private:
  TaskSupervisorRef supervisor_;
  bool link_;
};

Async<Result<Pid>> start_task_child(TaskSupervisorRef supervisor, StartFunction start,
                                    TaskChildOptions options);
Result<Started> start_unawaited(std::unique_ptr<TaskProcess> body);

template <class F, class... A>
class TaskStart final : public ChildStart {
 public:
  explicit TaskStart(F function, A... arguments)
      : function_(std::move(function)), arguments_(std::move(arguments)...) {}
  Async<Result<Started>> start(StartSettings) const override {
    co_return start_unawaited(
        std::apply([this](const A&... a) { return make_task(function_, a...); }, arguments_));
  }

 private:
  const F function_;
  const std::tuple<A...> arguments_;
};

}  // namespace internal

class TaskSupervisor {
 public:
  static Async<Result<TaskSupervisorRef>> start_link(TaskSupervisorSpec spec = {},
                                                     StartOptions options = {}) {
    return DynamicSupervisor::start_link(spec, std::move(options));
  }

  /// Task::async as a child of `supervisor`; the task is linked to its owner too.
  ///
  /// Errors: throws Exit `max_children`, or that of the call when the supervisor is gone.
  template <class F, class... A>
  static auto async(TaskSupervisorRef supervisor, F function, A... arguments) {
    return start_task(std::move(supervisor), true,
                      internal::make_task(std::move(function), std::move(arguments)...),
                      static_cast<internal::TaskValue<F, A...>*>(nullptr));
  }
  /// The same without the link: the owner learns of a failure by await, yield or its Down.
  template <class F, class... A>
  static auto async_nolink(TaskSupervisorRef supervisor, F function, A... arguments) {
    return start_task(std::move(supervisor), false,
                      internal::make_task(std::move(function), std::move(arguments)...),
                      static_cast<internal::TaskValue<F, A...>*>(nullptr));
  }

  /// Starts a function whose result nobody wants. Function and arguments are copied for each start.
  /// Returns: the pid, or `max_children`.
  template <class F, class... A>
  static Async<Result<Pid>> start_child(TaskSupervisorRef supervisor, TaskChildOptions options,
                                        F function, A... arguments) {
    return internal::start_task_child(std::move(supervisor),
                                      std::make_shared<const internal::TaskStart<F, A...>>(
                                          std::move(function), std::move(arguments)...),
                                      options);
  }

  /// Task::async_stream with its tasks as children of `supervisor`: linked to the consumer, or not:
  /// then the failure of an item never ends the consumer.
  template <class S, class F>
  static AsyncStream<S, F, internal::Adopt> async_stream(TaskSupervisorRef supervisor, S source,
                                                         F function,
                                                         AsyncStreamOptions options = {}) {
    return AsyncStream<S, F, internal::Adopt>(std::move(source), std::move(function), options,
                                              internal::Adopt(std::move(supervisor), true));
  }
  template <class S, class F>
  static AsyncStream<S, F, internal::Adopt> async_stream_nolink(TaskSupervisorRef supervisor,
                                                                S source, F function,
                                                                AsyncStreamOptions options = {}) {
    return AsyncStream<S, F, internal::Adopt>(std::move(source), std::move(function), options,
                                              internal::Adopt(std::move(supervisor), false));
  }

  /// The tasks that run now. OTP: Task.Supervisor.children/1.
  static Async<std::vector<Pid>> children(TaskSupervisorRef supervisor);

 private:
  template <class T>
  static Async<TaskOf<T>> start_task(TaskSupervisorRef supervisor, bool link,
                                     std::unique_ptr<internal::TaskProcess> body, T*) {
    body->hold();
    TaskOf<T> task(internal::spawn_task(std::move(body), {}), link);
    internal::Adopt adopt(std::move(supervisor), link);
    co_await adopt(task.pid());
    co_return task;
  }
};

}  // namespace otp
