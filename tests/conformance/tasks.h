#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "otp/base/atomic.h"
#include "otp/task/task.h"
#include "otp/task/task_supervisor.h"
#include "tests/conformance/scene.h"
#include "tests/support/holdings.h"

/// What the tests of tasks share: bodies of tasks, and what must be left when they have ended.
namespace otp::scene {

using testing::down_of;
using testing::end_of;
using testing::first_of;
using testing::Holdings;
using testing::holdings;
using testing::require_nothing_left;

// ---- Bodies of tasks.

int twice(int n);
/// Gives `n` after `time`.
Async<int> slowly(int n, Duration time);
/// Gives `milliseconds` after that many ms(). On threads that is soon: where a task must still run
/// when something else has happened, take endless().
Async<int> sleeper(int milliseconds);
Async<int> endless(int);
/// Ends with `bad` if `n` is 2.
Async<int> bad_at_two(int n);

// ---- Streams.

using Results = std::vector<Result<int>>;
/// "ok 30, exit bad, ..."
std::string text_of(const Results& results);
void require_text(const Results& results, const std::string& expected);

/// A source that counts what it hands out.
struct Counting {
  std::shared_ptr<Atomic<int>> pulled;
  int end = 1 << 30;
  std::optional<int> operator()() const;
};
std::shared_ptr<Atomic<int>> counter();

// ---- Ends.

/// The reason with which awaiting exits; `none` if it does not.
template <class T>
Async<ExitReason> exit_of(TaskOf<T>& task, Timeout timeout = infinity) {
  try {
    co_await task.await(timeout);
  } catch (const Exit& exit) {
    co_return exit.reason();
  }
  co_return ExitReason::atom("none");
}

/// Processes besides the one that asks. Exact once everything has settled.
uint64_t others();
/// Waits until there are no more than `before`.
Async<void> require_no_tasks(uint64_t before);

Async<TaskSupervisorRef> task_supervisor(uint64_t children_max = 0);
/// Waits until the supervisor has seen that its tasks have ended.
Async<void> require_no_children(TaskSupervisorRef supervisor);

}  // namespace otp::scene
