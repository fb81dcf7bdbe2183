#include "otp/observe/internal/log_queue.h"

#include <new>

namespace otp::observe::internal {
namespace {

size_t memory_of(const LogRecord& record) {
  size_t bytes = sizeof(LogRecord) + record.message.capacity();
  for (const LogField& field : record.fields) {
    bytes += sizeof(LogField) + field.key.capacity() + field.value.capacity();
  }
  return bytes;
}

int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

LogQueue::LogQueue(size_t bytes_max, uint64_t burst_records_max,
                   std::chrono::nanoseconds burst_window)
    : bytes_max_(bytes_max),
      burst_records_max_(burst_records_max),
      burst_window_ns_(burst_window.count()) {}

bool LogQueue::over_burst_limit(std::chrono::steady_clock::time_point now) noexcept {
  if (burst_records_max_ == 0) return false;
  const int64_t now_ns = nanoseconds(now);
  int64_t start = window_start_ns_.load(std::memory_order_relaxed);
  if (now_ns - start >= burst_window_ns_ &&
      window_start_ns_.compare_exchange_strong(start, now_ns, std::memory_order_relaxed)) {
    window_records_.store(0, std::memory_order_relaxed);
  }
  return window_records_.fetch_add(1, std::memory_order_relaxed) >= burst_records_max_;
}

bool LogQueue::in_burst(std::chrono::steady_clock::time_point now) const noexcept {
  return burst_records_max_ != 0 &&
         window_records_.load(std::memory_order_relaxed) > burst_records_max_ &&
         nanoseconds(now) - window_start_ns_.load(std::memory_order_relaxed) < burst_window_ns_;
}

bool LogQueue::push(const std::shared_ptr<const LogRecord>& record) noexcept {
  if (closed_.load(std::memory_order_relaxed)) {
    dropped_closed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (over_burst_limit(record->monotonic)) {
    dropped_burst_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const size_t bytes = sizeof(Node) + memory_of(*record);
  const size_t limit = record->level >= LogLevel::error ? bytes_max_ : bytes_max_ - bytes_max_ / 4;
  // relaxed: only a limit (Q3); the node itself is published by the inbox.
  const size_t before = queued_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  Node* node = before + bytes > limit ? nullptr : new (std::nothrow) Node{record, bytes, nullptr};
  if (node == nullptr) {
    queued_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    dropped_full_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  // release: counted before it can be finished; pairs with the acquire in accepted().
  accepted_.fetch_add(1, std::memory_order_release);
  Node* head = inbox_.load(std::memory_order_relaxed);
  do {
    node->next = head;
    // seq_cst: publishes the node (Q2) and orders the push before the look at sleeping_ (Q4).
  } while (!inbox_.compare_exchange_weak(head, node, std::memory_order_seq_cst,
                                         std::memory_order_relaxed));
  // seq_cst: the other half of begin_sleep (Q4). One of those who see it wakes the writer.
  return head == nullptr && sleeping_.exchange(false, std::memory_order_seq_cst);
}

bool LogQueue::begin_sleep() noexcept {
  // seq_cst: sleeping_ is set before the inbox is looked at; pairs with push (Q4).
  sleeping_.store(true, std::memory_order_seq_cst);
  return inbox_.load(std::memory_order_seq_cst) == nullptr;
}

LogQueue::Batch LogQueue::take_all() noexcept {
  // acquire: pairs with push, so that the nodes can be read (Q2).
  Node* newest = inbox_.exchange(nullptr, std::memory_order_acquire);
  Node* oldest = nullptr;
  while (newest != nullptr) {
    Node* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return Batch(this, oldest);
}

std::shared_ptr<const LogRecord> LogQueue::Batch::pop() {
  if (first_ == nullptr) return nullptr;
  Node* node = first_;
  first_ = node->next;
  std::shared_ptr<const LogRecord> record = std::move(node->record);
  queue_->queued_bytes_.fetch_sub(node->bytes, std::memory_order_relaxed);
  delete node;
  return record;
}

LogStats LogQueue::dropped() const noexcept {
  LogStats stats;
  stats.dropped_full = dropped_full_.load(std::memory_order_relaxed);
  stats.dropped_burst = dropped_burst_.load(std::memory_order_relaxed);
  stats.dropped_failed = dropped_closed_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace otp::observe::internal
