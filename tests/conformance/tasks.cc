#include "tests/conformance/tasks.h"

namespace otp::scene {

namespace {

// Long enough for any machine; then the test says what is left, and does not only hang.
constexpr int kLooksMax = 1'000'000;

}  // namespace

int twice(int n) { return 2 * n; }

Async<int> slowly(int n, Duration time) {
  co_await otp::sleep(time);
  co_return n;
}

Async<int> sleeper(int milliseconds) {
  co_await otp::sleep(ms(milliseconds));
  co_return milliseconds;
}

Async<int> endless(int n) {
  co_await otp::sleep(infinity);
  co_return n;
}

Async<int> bad_at_two(int n) {
  co_await otp::sleep(ms(1));
  if (n == 2) otp::exit(ExitReason::atom("bad"));
  co_return n;
}

std::string text_of(const Results& results) {
  std::string text;
  for (const Result<int>& each : results) {
    if (!text.empty()) text += ", ";
    text += each.ok() ? "ok " + std::to_string(each.value()) : "exit " + each.error().to_string();
  }
  return text;
}

void require_text(const Results& results, const std::string& expected) {
  testing::require_equal(text_of(results), expected);
}

std::optional<int> Counting::operator()() const {
  if (pulled->load() == end) return std::nullopt;
  return pulled->fetch_add(1);
}

std::shared_ptr<Atomic<int>> counter() { return std::make_shared<Atomic<int>>(0); }

uint64_t others() { return internal::env().system->process_count() - 1; }

Async<void> require_no_tasks(uint64_t before) {
  for (int i = 0; i < kLooksMax && others() > before; ++i) co_await otp::sleep(ms(1));
  require(others() <= before, std::to_string(others()) + " processes are left");
}

Async<TaskSupervisorRef> task_supervisor(uint64_t children_max) {
  auto started = co_await TaskSupervisor::start_link({.children_max = children_max});
  co_return std::move(started).or_exit();
}

Async<void> require_no_children(TaskSupervisorRef supervisor) {
  uint64_t left = 1;
  for (int i = 0; i < kLooksMax && left > 0; ++i) {
    left = (co_await DynamicSupervisor::count_children(supervisor)).active;
    if (left > 0) co_await otp::sleep(ms(1));
  }
  require(left == 0, std::to_string(left) + " children are left");
}

}  // namespace otp::scene
