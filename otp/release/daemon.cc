#include "otp/release/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>

#include "otp/release/std_streams.h"

namespace otp::release {
namespace {

constexpr size_t kMessageBytesMax = 64 * 1024;
constexpr size_t kLogTailBytesMax = 4096;
constexpr std::chrono::seconds kStopAfterLateStart{10};
constexpr std::chrono::seconds kExitAfterFailure{5};
constexpr int kPollChildEveryMs = 5;

off_t size_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

/// What was appended to the log since it had `from` bytes: the end of it, in whole lines.
std::string log_since(const std::string& path, off_t from) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  off_t size = size_of(path);
  if (!fd.valid() || size <= from) return "";
  bool cut = size - from > static_cast<off_t>(kLogTailBytesMax);
  off_t start = cut ? size - static_cast<off_t>(kLogTailBytesMax) : from;
  std::string tail(static_cast<size_t>(size - start), '\0');
  ssize_t count = ::pread(fd.get(), tail.data(), tail.size(), start);
  tail.resize(count > 0 ? static_cast<size_t>(count) : 0);
  if (cut) tail.erase(0, tail.find('\n') + 1);
  while (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail;
}

/// Waits for the child's end until `deadline`. Nothing when it still runs then.
std::optional<int> wait_for(pid_t child, Clock::time_point deadline) {
  while (true) {
    int status = 0;
    pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;
    if (Clock::now() >= deadline) return std::nullopt;
    ::poll(nullptr, 0, kPollChildEveryMs);
  }
}

/// Reads until the other end closes or `deadline` comes; true when it closed.
bool read_until_closed(int fd, Clock::time_point deadline, std::string& text) {
  char buffer[1024];
  while (text.size() < kMessageBytesMax) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    int events = ::poll(&wait, 1, poll_timeout(deadline));
    if (events == 0) return false;
    if (events < 0) continue;
    ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0 || (count < 0 && errno != EINTR)) return true;
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
  }
  return true;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    return "was ended by signal " + std::to_string(WTERMSIG(status)) + " before it was ready";
  }
  return "ended with status " + std::to_string(WEXITSTATUS(status)) + " before it was ready";
}

int exit_status_of(int status) {
  bool said = WIFEXITED(status) && WEXITSTATUS(status) != 0;
  return said ? WEXITSTATUS(status) : 1;
}

int run_child(const Layout& layout, UniqueFd pipe, const std::function<int(Readiness)>& node) {
  ::setsid();
  close_inherited(pipe.get());
  Readiness readiness(std::move(pipe));
  std::string error = redirect_streams(layout.log_path());
  if (!error.empty()) {
    readiness.failed(error);
    return 1;
  }
  return node(std::move(readiness));
}

/// Ends a node that is not ready in time; a child of ours, so its pid cannot be a stranger's.
void end_late(pid_t child) {
  ::kill(child, SIGTERM);
  if (wait_for(child, Clock::now() + kStopAfterLateStart)) return;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

StartResult watch_start(const Layout& layout, pid_t child, int pipe, off_t log_before,
                        std::chrono::milliseconds patience) {
  StartResult result{.role = StartResult::Role::starter, .status = 1, .pid = child};
  std::string said;
  if (!read_until_closed(pipe, Clock::now() + patience, said)) {
    end_late(child);
    result.message = "was not ready within " + std::to_string(patience.count()) +
                     " ms and was stopped (see --timeout); log: " + layout.log_path();
    return result;
  }
  size_t line = said.find('\n');
  std::string word = said.substr(0, line);
  std::string text = line == std::string::npos ? "" : said.substr(line + 1);
  if (word == "ready") {
    result.status = 0;
    result.ready = true;
    result.message = text;
    return result;
  }
  // The node is on its way out. Its end is awaited, so that the next start finds the lock free.
  std::optional<int> ended = wait_for(child, Clock::now() + kExitAfterFailure);
  if (ended) result.status = exit_status_of(*ended);
  if (word == "failed") {
    result.message = text;
    return result;
  }
  result.message = ended ? describe_end(*ended) : "gave up, but has not ended yet";
  std::string tail = log_since(layout.log_path(), log_before);
  result.message +=
      tail.empty() ? "; log: " + layout.log_path() : "; from " + layout.log_path() + ":\n" + tail;
  return result;
}

}  // namespace

void Readiness::tell(const char* word, const std::string& text) {
  if (!pipe_.valid()) return;
  // A starter that has gone away is no reason to fail.
  (void)write_all(pipe_.get(), std::string(word) + "\n" + text.substr(0, kMessageBytesMax / 2));
  pipe_.reset();
}

StartResult start_in_background(const Layout& layout, std::chrono::milliseconds patience,
                                const std::function<int(Readiness)>& node) {
  StartResult result{.role = StartResult::Role::starter, .status = 1};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    result.message = system_error("create", "a pipe", errno);
    return result;
  }
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  off_t log_before = size_of(layout.log_path());
  std::fflush(nullptr);  // or both processes would print what is buffered
  pid_t child = ::fork();
  if (child < 0) {
    result.message = system_error("fork", "the node", errno);
    return result;
  }
  if (child == 0) {
    read_end.reset();
    result.role = StartResult::Role::node;
    result.status = run_child(layout, std::move(write_end), node);
    return result;
  }
  write_end.reset();
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  return watch_start(layout, child, read_end.get(), log_before, patience);
}

}  // namespace otp::release
