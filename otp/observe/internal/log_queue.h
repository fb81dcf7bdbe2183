#pragma once

// LogQueue. The bounded queue between those who log and the thread that writes.
//
// Threads: push(), close(), accepted(), dropped() any; all else the writing thread.
// (Q1) inbox_ is a stack of nodes, newest first; only push() adds, only take_all() empties it.
// (Q2) A node is immutable once pushed, but for `next`, which take_all() turns round.
// (Q3) queued_bytes_ is at least the bytes of all nodes pushed and not popped.
// (Q4) The writer sleeps only after it has set sleeping_ and then seen an empty inbox; a push to an
//      empty inbox looks at sleeping_ afterwards and returns true to the one who must wake it.
// Promise: what was pushed before accepted() was read is popped before the first accepted() nodes
// are finished.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "otp/base/log.h"
#include "otp/observe/log_handler.h"

namespace otp::observe::internal {

class LogQueue {
  struct Node {
    std::shared_ptr<const LogRecord> record;
    size_t bytes;
    Node* next;
  };

 public:
  // Nodes taken, the oldest first. Memory counts as queued until a node is popped.
  class Batch {
   public:
    Batch(LogQueue* queue, Node* first) : queue_(queue), first_(first) {}
    Batch(Batch&& other) noexcept
        : queue_(other.queue_), first_(std::exchange(other.first_, nullptr)) {}
    Batch& operator=(Batch&&) = delete;
    ~Batch() {
      while (pop()) continue;
    }
    bool empty() const { return first_ == nullptr; }
    std::shared_ptr<const LogRecord> pop();  // null at the end

   private:
    LogQueue* queue_;
    Node* first_;
  };

  LogQueue(size_t bytes_max, uint64_t burst_records_max, std::chrono::nanoseconds burst_window);
  ~LogQueue() { take_all(); }
  LogQueue(const LogQueue&) = delete;

  // True when the writer sleeps and the caller must wake it. Drops and counts instead of waiting.
  bool push(const std::shared_ptr<const LogRecord>& record) noexcept;
  // Further pushes are dropped and counted as failed.
  void close() noexcept { closed_.store(true, std::memory_order_relaxed); }
  uint64_t accepted() const noexcept { return accepted_.load(std::memory_order_acquire); }
  LogStats dropped() const noexcept;

  Batch take_all() noexcept;
  // False when there is something to take: do not sleep.
  bool begin_sleep() noexcept;
  void end_sleep() noexcept { sleeping_.store(false, std::memory_order_relaxed); }
  // Whether the window in which records were dropped is still running.
  bool in_burst(std::chrono::steady_clock::time_point now) const noexcept;

 private:
  bool over_burst_limit(std::chrono::steady_clock::time_point now) noexcept;

  const size_t bytes_max_;
  const uint64_t burst_records_max_;
  const int64_t burst_window_ns_;

  std::atomic<Node*> inbox_{nullptr};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> closed_{false};  // relaxed: a late push is freed with the queue
  std::atomic<size_t> queued_bytes_{0};
  std::atomic<uint64_t> accepted_{0};
  // relaxed, all below: limits and counts may be off by those who race at a window's edge
  std::atomic<int64_t> window_start_ns_{0};
  std::atomic<uint64_t> window_records_{0};
  std::atomic<uint64_t> dropped_full_{0};
  std::atomic<uint64_t> dropped_burst_{0};
  std::atomic<uint64_t> dropped_closed_{0};
};

}  // namespace otp::observe::internal
