#include "otp/release/signals.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace otp::release {
namespace {

using Action = StopSignals::Action;

TEST_CASE("R-022 one stop, however often TERM and HUP come", "[release][signals]") {
  StopSignals signals;
  CHECK(signals.on_signal(SIGHUP) == Action::hangup);
  CHECK(signals.on_signal(SIGTERM) == Action::begin_stop);
  CHECK(signals.on_signal(SIGTERM) == Action::already_stopping);
  CHECK(signals.on_signal(SIGINT) == Action::already_stopping);
  CHECK(signals.on_signal(SIGHUP) == Action::hangup);
  for (int i = 0; i < 10; ++i) CHECK(signals.on_signal(SIGTERM) == Action::already_stopping);
}

TEST_CASE("the third INT ends at once", "[release][signals]") {
  StopSignals signals;
  CHECK(signals.on_signal(SIGINT) == Action::begin_stop);
  CHECK(signals.on_signal(SIGINT) == Action::already_stopping);
  CHECK(signals.on_signal(SIGINT) == Action::end_now);
}

/// What a watcher told, for a test that waits for it.
class Told {
 public:
  void add(const std::string& line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(line);
    changed_.notify_all();
  }
  std::vector<std::string> wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

/// In a child, so that the test program keeps its own signals. Returns the child's exit status.
int in_child(int (*body)()) {
  pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("a watcher reads signals that came before it was started", "[release][signals]") {
  CHECK(in_child([] {
          prepare_signals();
          kill(getpid(), SIGTERM);
          kill(getpid(), SIGHUP);
          Told told;
          SignalWatcher watcher;
          std::string error = watcher.start({.stop = [&](const char* name) { told.add(name); },
                                             .report = [&](const std::string& s) { told.add(s); }});
          auto lines = told.wait_for(3);
          watcher.stop();
          // What the stop then logs comes behind the reason for it.
          const std::string pid = std::to_string(getpid());
          const auto said =
              std::find(lines.begin(), lines.end(), "stopping on signal TERM from pid " + pid);
          const auto stopped = std::find(lines.begin(), lines.end(), "TERM");
          return error.empty() && said < stopped && stopped < lines.end() ? 0 : 1;
        }) == 0);
}

TEST_CASE("R-025 writing to a reader who has gone is an error value", "[release][signals]") {
  CHECK(in_child([] {
          prepare_signals();
          int ends[2];
          if (pipe(ends) != 0) return 2;
          close(ends[0]);
          return write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 1;
        }) == 0);
}

TEST_CASE("inherited masks and ignored signals are undone", "[release][signals]") {
  CHECK(in_child([] {
          sigset_t all;
          sigfillset(&all);
          sigprocmask(SIG_SETMASK, &all, nullptr);
          signal(SIGCHLD, SIG_IGN);
          prepare_signals();
          sigset_t now;
          sigprocmask(SIG_SETMASK, nullptr, &now);
          struct sigaction child{};
          sigaction(SIGCHLD, nullptr, &child);
          bool right = sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGCHLD) == 0 &&
                       sigismember(&now, SIGUSR1) == 0 && child.sa_handler == SIG_DFL;
          return right ? 0 : 1;
        }) == 0);
}

}  // namespace
}  // namespace otp::release
