#include "otp/task/task_supervisor.h"

#include <string>

namespace otp {

namespace internal {

namespace {

/// The process is there already, held: the supervisor only links to it. If it has died meanwhile,
/// the link's EXIT says so.
class HeldTask final : public ChildStart {
 public:
  explicit HeldTask(Pid task) : task_(task) {}
  Async<Result<Started>> start(StartSettings) const override {
    link(task_);
    co_return Started{task_, {}, {}};
  }

 private:
  const Pid task_;
};

ChildSpec task_spec(StartFunction start, const TaskChildOptions& options) {
  ChildOptions child;
  child.restart = options.restart;
  child.shutdown = options.shutdown;
  return make_child_spec("task", std::move(start), child);
}

/// A task that was never let go of: gone, and nothing of it reaches the owner but its DOWN.
void discard(Pid task) {
  unlink(task);
  {
    LibraryScope scope(env());
    self_process().flush_exit(task.id);
  }
  otp::exit(task, ExitReason::kill());
}

}  // namespace

// The task is born linked to its owner and held. So its owner's end is its end from the first
// moment on, the supervisor can refuse it before it has done anything, and neither link can come
// too late.
Async<void> Adopt::operator()(Pid task) const {
  std::exception_ptr thrown;
  try {
    auto started = co_await DynamicSupervisor::start_child(
        supervisor_, task_spec(std::make_shared<const HeldTask>(task), {}));
    if (!started.ok()) throw Exit(started.error());
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) {
    discard(task);
    std::rethrow_exception(thrown);
  }
  if (!link_) unlink(task);
  release_task(task);
}

Async<Result<Pid>> start_task_child(TaskSupervisorRef supervisor, StartFunction start,
                                    TaskChildOptions options) {
  auto started = co_await DynamicSupervisor::start_child(std::move(supervisor),
                                                         task_spec(std::move(start), options));
  if (!started.ok()) co_return started.error();
  co_return started.value().pid;
}

Result<Started> start_unawaited(std::unique_ptr<TaskProcess> body) {
  try {
    return Started{spawn_process(std::move(body), {.link = true}).pid, {}, {}};
  } catch (const Exit& exit) {
    return exit.reason();
  }
}

}  // namespace internal

Async<std::vector<Pid>> TaskSupervisor::children(TaskSupervisorRef supervisor) {
  std::vector<Pid> pids;
  for (const ChildInfo& child : co_await DynamicSupervisor::which_children(std::move(supervisor))) {
    if (child.pid) pids.push_back(child.pid);
  }
  co_return pids;
}

}  // namespace otp
