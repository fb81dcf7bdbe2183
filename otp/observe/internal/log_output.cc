#include "otp/observe/internal/log_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

namespace otp::observe::internal {
namespace {

using std::chrono::steady_clock;

constexpr size_t kPolledBytesMax = PIPE_BUF;  // a writable pipe takes that much without waiting

ExitReason failure(const char* doing, int error) {
  const char* name = strerrorname_np(error);
  return ExitReason::tagged(
      "log_handler", Term(std::string(doing) + ": " + (name == nullptr ? "unknown error" : name)));
}

// A timeout for poll: rounded up, so that nobody wakes just before the time and spins.
int milliseconds_until(steady_clock::time_point until) {
  if (until == steady_clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

LogOutput::LogOutput(LogOutput&& other) noexcept
    : out_(std::move(other.out_)), event_(std::move(other.event_)), kind_(other.kind_) {}

Result<LogOutput> LogOutput::open(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return failure("the log's descriptor", errno);
  FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.get() < 0) return failure("eventfd", errno);
  if (S_ISFIFO(status.st_mode)) {
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    FileDescriptor own(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
    if (own.get() >= 0) return LogOutput(std::move(own), std::move(event), Kind::nonblocking);
  }
  FileDescriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (copy.get() < 0) return failure("the log's descriptor", errno);
  const Kind kind = S_ISSOCK(status.st_mode) ? Kind::socket : Kind::polled;
  return LogOutput(std::move(copy), std::move(event), kind);
}

ssize_t LogOutput::write_some(std::string_view bytes) {
  switch (kind_) {
    case Kind::nonblocking: return ::write(out_.get(), bytes.data(), bytes.size());
    case Kind::socket:
      return send(out_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    case Kind::polled:
      pollfd writable{out_.get(), POLLOUT, 0};
      if (poll(&writable, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
      }
      return ::write(out_.get(), bytes.data(), std::min(bytes.size(), kPolledBytesMax));
  }
  return -1;
}

LogOutput::Written LogOutput::write(std::string_view bytes) {
  Written written;
  while (written.bytes < bytes.size()) {
    const ssize_t count = write_some(bytes.substr(written.bytes));
    if (count > 0) {
      written.bytes += static_cast<size_t>(count);
    } else if (count == 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
      if (wait_writable()) continue;
      written.error = ETIMEDOUT;
      return written;
    } else if (errno != EINTR) {
      written.error = errno;
      return written;
    }
  }
  return written;
}

// False when a stop was requested and its time is over.
bool LogOutput::wait_writable() {
  while (true) {
    const int64_t stop_at = stop_at_ns_.load(std::memory_order_acquire);
    const bool stopping = stop_at != kNever;
    const auto until = stopping ? Deadline(std::chrono::nanoseconds(stop_at)) : Deadline::max();
    if (stopping && steady_clock::now() >= until) return false;
    pollfd waited[2] = {{out_.get(), POLLOUT, 0}, {event_.get(), POLLIN, 0}};
    const nfds_t count = stopping ? 1 : 2;  // a stop that is known need not be told again
    const int ready = poll(waited, count, milliseconds_until(until));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (waited[0].revents != 0) return true;
    uint64_t wakes = 0;
    if (read(event_.get(), &wakes, sizeof wakes) < 0) continue;  // somebody's earlier wake
  }
}

void LogOutput::sleep_until(Deadline until) {
  pollfd woken{event_.get(), POLLIN, 0};
  if (poll(&woken, 1, milliseconds_until(until)) <= 0) return;
  uint64_t wakes = 0;
  if (read(event_.get(), &wakes, sizeof wakes) < 0) return;  // EAGAIN: nothing to take back
}

void LogOutput::wake() noexcept {
  const uint64_t one = 1;
  // It only fails when the counter is full, and then the writer wakes anyway.
  if (::write(event_.get(), &one, sizeof one) < 0) return;
}

void LogOutput::request_stop(Deadline deadline) noexcept {
  const auto since_epoch = std::chrono::nanoseconds(deadline.time_since_epoch());
  stop_at_ns_.store(std::min(since_epoch.count(), kNever - 1), std::memory_order_release);
  wake();
}

}  // namespace otp::observe::internal
