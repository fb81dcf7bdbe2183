#include "otp/runtime/blocking_pool.h"

#include <system_error>

namespace otp::internal {

bool BlockingPool::submit(std::unique_ptr<Work>& work) {
  std::lock_guard lock(mutex_);
  if (stopping_ || queue_.size() >= queue_max_) return false;
  if (idle_ <= queue_.size() && threads_.size() < threads_max_) {
    try {
      threads_.emplace_back([this] { thread_main(); });
    } catch (const std::system_error&) {
      // Those there are do it a little later.
    }
  }
  if (threads_.empty()) return false;
  queue_.push_back(std::move(work));
  changed_.notify_one();
  return true;
}

void BlockingPool::thread_main() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    std::unique_ptr<Work> work = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    lock.unlock();
    work->run();
    work.reset();
    lock.lock();
    if (--running_ == 0 && stopping_) changed_.notify_all();
  }
}

void BlockingPool::stop(std::chrono::nanoseconds report_after,
                        const std::function<void(size_t)>& report) {
  std::deque<std::unique_ptr<Work>> dropped;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(queue_);
  }
  changed_.notify_all();
  {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, report_after, [this] { return running_ == 0; })) {
      const size_t running = running_;
      lock.unlock();
      report(running);
      lock.lock();
    }
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace otp::internal
