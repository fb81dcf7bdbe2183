#pragma once

/// Where records go: a Logger has several handlers, each with its own level.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "otp/base/log.h"

namespace otp::observe {

using Deadline = std::chrono::steady_clock::time_point;

/// What became of the records that a handler was given.
struct LogStats {
  uint64_t written = 0;
  uint64_t dropped_full = 0;    ///< the reader did not keep up
  uint64_t dropped_burst = 0;   ///< more came in a window than is allowed
  uint64_t dropped_failed = 0;  ///< the write failed, or the handler was stopped before

  uint64_t dropped() const { return dropped_full + dropped_burst + dropped_failed; }
};

/// Takes the records of a Logger.
///
/// Threads: handle(), level() and set_level() from any; flush() and stop() from any.
class LogHandler {
 public:
  explicit LogHandler(LogLevel level) : level_(level) {}
  LogHandler(const LogHandler&) = delete;
  LogHandler& operator=(const LogHandler&) = delete;
  virtual ~LogHandler() = default;

  LogLevel level() const noexcept { return level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }

  /// Takes a record of at least level(). Returns without waiting for any reader.
  virtual void handle(const std::shared_ptr<const LogRecord>& record) noexcept = 0;

  /// Waits until all records given before are out, or dropped and counted. False: not in time.
  virtual bool flush(Deadline) noexcept { return true; }

  /// As flush(), and takes no more records; what is not out by the deadline is dropped. After it
  /// returns, in time or not, the handler may be destroyed without further waiting.
  virtual bool stop(Deadline) noexcept { return true; }

  virtual LogStats stats() const noexcept { return {}; }

 private:
  std::atomic<LogLevel> level_;  // relaxed: a level that acts a moment late does no harm
};

/// Keeps the newest `records_max` records in memory: for tests.
class MemoryLogHandler final : public LogHandler {
 public:
  explicit MemoryLogHandler(LogLevel level = LogLevel::debug, size_t records_max = 10'000)
      : LogHandler(level), records_max_(records_max) {}

  void handle(const std::shared_ptr<const LogRecord>& record) noexcept override {
    std::lock_guard lock(mutex_);
    if (records_.size() == records_max_) records_.erase(records_.begin());
    records_.push_back(record);
  }
  std::vector<std::shared_ptr<const LogRecord>> records() const {
    std::lock_guard lock(mutex_);
    return records_;
  }

 private:
  const size_t records_max_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const LogRecord>> records_;  // guarded by mutex_
};

}  // namespace otp::observe
