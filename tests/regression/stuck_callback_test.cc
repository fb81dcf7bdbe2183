// A callback that does not return, on the only core there is.

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "otp/base/log.h"
#include "otp/behaviour/gen_server.h"
#include "tests/support/proc_status.h"

using namespace otp;
using namespace std::chrono_literals;
using otp::testing::proc_status;
using Clock = std::chrono::steady_clock;

namespace stuck_callback_test {  // not anonymous: a stack shows the names that the program exports

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr auto kAnswerMax = 500ms;
#else
constexpr auto kAnswerMax = 50ms;
#endif
constexpr auto kSpin = 5s;

std::atomic<bool> spinning{false};
std::atomic<int> children_seen{0};

struct Mark {
  int number;
};
struct Rang {};
struct Seen {
  int marks = 0;
  bool in_order = true;
  int rings = 0;
};
struct Tell {
  using Reply = Seen;
};
struct Ask {
  using Reply = int;
};
struct Spin {
  Pid partner{};
};

class Echo {
 public:
  int handle_call(Ask) { return 42; }
};

/// Writes down what the stuck callback does.
class Recorder {
 public:
  using Info = Protocol<Rang>;
  void handle_cast(Mark mark) {
    seen_.in_order = seen_.in_order && mark.number == seen_.marks;
    ++seen_.marks;
  }
  void handle_info(Rang) { ++seen_.rings; }
  Seen handle_call(Tell) { return seen_; }

 private:
  Seen seen_;
};

/// Ends when somebody linked to it has.
Async<void> partner() {
  trap_exit(true);
  (void)co_await receive<ExitMessage>();
}

Async<void> count_child() {
  children_seen.fetch_add(1);
  co_return;
}

class Spinner {
 public:
  struct Args {
    Server<Recorder> recorder{};
  };
  explicit Spinner(Args args) : recorder_(args.recorder) {}

  [[gnu::noinline]] void handle_cast(Spin spin) {
    spinning.store(true);
    const auto until = Clock::now() + kSpin;
    link(spin.partner);
    int marks = 0;
    for (auto next = Clock::now(); Clock::now() < until;) {
      if (Clock::now() < next || marks == kMarks) continue;
      next += 10ms;
      otp::cast(recorder_, Mark{marks++});
      spawn(count_child);
      send_after(Duration(1ms), recorder_.pid(), Rang());
    }
    spinning.store(false);
  }
  static constexpr int kMarks = 200;

 private:
  Server<Recorder> recorder_;
};

/// Keeps what is said of stuck callbacks.
class Words final : public LogSink {
 public:
  bool enabled(LogLevel level, std::string_view) const noexcept override {
    return level >= LogLevel::warning;
  }
  void log(LogRecord&& record) noexcept override {
    std::lock_guard lock(mutex_);
    text_ += record.message + "\n";
    for (const LogField& field : record.fields) text_ += field.value + "\n";
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

struct Outcome {
  std::vector<Clock::duration> answers{};
  Seen while_stuck{};
  Pid spinner{};
};

Async<Outcome> spin_beside_calls() {
  auto recorder = (co_await start<Recorder>()).or_exit();
  auto echo = (co_await start<Echo>()).or_exit();
  auto spinner = (co_await start<Spinner>({.recorder = recorder})).or_exit();
  Pid linked = spawn(partner);
  cast(spinner, Spin{linked});
  while (!spinning.load()) co_await otp::yield();

  Outcome outcome{.spinner = spinner.pid()};
  while (spinning.load()) {
    const auto begin = Clock::now();
    const int answer = co_await call(echo, Ask());
    outcome.answers.push_back(Clock::now() - begin);
    if (answer != 42) throw std::logic_error("a wrong answer");
    co_await otp::sleep(Duration(5ms));
    if (spinning.load()) outcome.while_stuck = co_await call(recorder, Tell());
  }
  // The link holds: the partner traps exits and hears of the spinner's end.
  Reference down = monitor(linked);
  co_await otp::stop(spinner);
  (void)co_await receive<Down>([down](const Down& each) { return each.reference == down; });
  co_await otp::stop(recorder);
  co_await otp::stop(echo);
  co_return outcome;
}

TEST_CASE("a callback that spins for five seconds on the only core harms nobody else",
          "[regression][stuck]") {
  Words words;
  SystemOptions options;
  options.cores = 1;
  options.log = &words;
  System system(options);
  system.run([]() -> Async<void> { co_return; });
  const long threads = proc_status("Threads");
  Outcome outcome = system.run(spin_beside_calls);

  const auto ended = Clock::now();
  while (proc_status("Threads") > threads && Clock::now() < ended + 10s) std::this_thread::yield();
  CHECK(proc_status("Threads") == threads);
  CHECK(Clock::now() - ended < 1s);

  // One in a hundred may be late: the machine runs other tests beside this one.
  std::sort(outcome.answers.begin(), outcome.answers.end());
  REQUIRE(outcome.answers.size() > 100);
  CHECK(outcome.answers[outcome.answers.size() * 99 / 100] < kAnswerMax);

  CHECK(outcome.while_stuck.in_order);
  CHECK(outcome.while_stuck.marks == Spinner::kMarks);
  CHECK(outcome.while_stuck.rings == Spinner::kMarks);
  CHECK(children_seen.load() == Spinner::kMarks);

  const std::string said = words.text();
  INFO(said);
  CHECK(said.find(outcome.spinner.to_string()) != std::string::npos);
#if !__has_feature(thread_sanitizer)  // there the frames of libc may hide their caller
  CHECK(said.find("Spinner::handle_cast") != std::string::npos);
#endif
}

}  // namespace stuck_callback_test
