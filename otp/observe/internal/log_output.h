#pragma once

// LogOutput. Writes to a descriptor that may be stuck, so that a stop can always end the wait.
//
// Threads: wake() and request_stop() any; all else the writing thread.
//
// How it avoids to be stuck in write(2) without O_NONBLOCK, which would change the descriptor for
// everybody who shares it:
//   pipe     opened once more through /proc: a description of our own, and that one is O_NONBLOCK
//   socket   send with MSG_DONTWAIT
//   other    and a pipe without /proc: written only after poll(2) said so, a page at a time. A pipe
//            that others fill as well, or a terminal, may still hold us up; then only we are stuck.

#include <atomic>
#include <chrono>
#include <string_view>

#include "otp/base/result.h"

namespace otp::observe::internal {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

class LogOutput {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  struct Written {
    size_t bytes = 0;
    int error = 0;  // errno, why not all of it; ETIMEDOUT when stopped meanwhile
  };

  // Duplicates `fd`.
  static Result<LogOutput> open(int fd);
  LogOutput(LogOutput&& other) noexcept;

  // Waits for the reader, but no longer than a requested stop allows.
  Written write(std::string_view bytes);
  // Until wake(), request_stop() or that time.
  void sleep_until(Deadline until);
  bool stopping() const noexcept { return stop_at_ns_.load(std::memory_order_acquire) != kNever; }
  void close() { out_ = FileDescriptor(); }

  void wake() noexcept;
  void request_stop(Deadline deadline) noexcept;

 private:
  enum class Kind { nonblocking, socket, polled };
  static constexpr int64_t kNever = INT64_MAX;

  LogOutput(FileDescriptor out, FileDescriptor event, Kind kind)
      : out_(std::move(out)), event_(std::move(event)), kind_(kind) {}
  ssize_t write_some(std::string_view bytes);
  bool wait_writable();

  FileDescriptor out_;
  FileDescriptor event_;
  Kind kind_;
  // release by the one who stops, acquire by the writer: the deadline is all there is to see.
  std::atomic<int64_t> stop_at_ns_{kNever};
};

}  // namespace otp::observe::internal
