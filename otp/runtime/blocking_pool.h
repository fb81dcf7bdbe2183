#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace otp::internal {

/// A bounded pool of threads for code that blocks. Threads start when work waits and none is idle,
/// and end with the System. Each piece of work runs to its end, whoever asked for it.
///
/// Threads: any.
class BlockingPool {
 public:
  struct Work {
    virtual ~Work() = default;
    virtual void run() noexcept = 0;
  };

  BlockingPool(uint32_t threads_max, uint32_t queue_max)
      : threads_max_(threads_max), queue_max_(queue_max) {}
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;
  ~BlockingPool() {
    stop(std::chrono::hours(1), [](size_t) {});
  }

  /// False: the queue is full, or no thread could be started at all; `work` is untouched.
  bool submit(std::unique_ptr<Work>& work);
  /// Drops what waits, finishes what runs, ends the threads. Calls `report` with the number of
  /// functions that still run each time another `report_after` has passed.
  void stop(std::chrono::nanoseconds report_after, const std::function<void(size_t)>& report);

 private:
  void thread_main();

  const uint32_t threads_max_;
  const uint32_t queue_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Work>> queue_;  // these guarded by mutex_
  std::vector<std::thread> threads_;
  uint32_t idle_ = 0;
  size_t running_ = 0;
  bool stopping_ = false;
};

}  // namespace otp::internal
