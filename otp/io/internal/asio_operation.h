#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/system_executor.hpp>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "otp/base/atomic.h"
#include "otp/base/pool.h"
#include "otp/io/internal/process_operation.h"

namespace otp::io::internal {

/// The part of an awaited Asio operation that does not depend on its types.
///
/// Cancelling. An Asio operation may only be cancelled where its handlers run, never beside them,
/// so request_cancel() posts to the executor of the operation, which it recorded when it started.
/// One signal may come between two steps of a composed operation and be lost; so it is repeated, at
/// once a few times and then with growing pauses, until the operation answers.
///
/// Invariants, on state_: (C1) kAnswered is set by the handler, once, after the results are in
/// place. (C2) kCancelling is set by the process, at most once. (C3) Whoever finds the other's bit
/// set when he is done, calls complete(): the handler when nobody cancels, else the canceller's
/// first step after it. Nobody touches the object afterwards.
class AsioOperation : public ProcessOperation {
 public:
  /// Called by the handler; the results are in place.
  void answer() noexcept;
  boost::asio::cancellation_slot slot() noexcept { return signal_.slot(); }

  /// Remembers where the operation's handlers run; the first one counts.
  template <class Executor>
  void record(const Executor& executor) noexcept {
    if constexpr (std::is_convertible_v<Executor, boost::asio::any_io_executor> &&
                  !std::is_same_v<Executor, boost::asio::system_executor>) {
      uint8_t none = kNone;
      // acquire/release: pairs with the load in request_cancel.
      if (recorded_.load(relaxed) == kNone &&
          recorded_.compare_exchange_strong(none, kWriting, relaxed)) {
        executor_ = executor;
        recorded_.store(kWritten, release);
      }
    }
  }

 protected:
  AsioOperation() = default;
  ~AsioOperation() = default;
  std::exception_ptr start_error_;  // what the start of the operation threw

 private:
  friend struct CancelStep;
  static constexpr uint8_t kAnswered = 1;
  static constexpr uint8_t kCancelling = 2;
  static constexpr uint8_t kNone = 0;
  static constexpr uint8_t kWriting = 1;
  static constexpr uint8_t kWritten = 2;

  void request_cancel() noexcept final;

  boost::asio::cancellation_signal signal_;
  boost::asio::any_io_executor executor_;
  Atomic<uint8_t> recorded_{kNone};
  Atomic<uint8_t> state_{0};
};

/// Memory of handlers, from the pool of letters and frames.
template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}
  T* allocate(size_t count) {
    return static_cast<T*>(otp::internal::pool_allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, size_t count) noexcept {
    otp::internal::pool_free(memory, count * sizeof(T));
  }
  friend bool operator==(PoolAllocator, PoolAllocator) { return true; }
};

template <>
struct PoolAllocator<void> {
  using value_type = void;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}
  template <class U>
  struct rebind {
    using other = PoolAllocator<U>;
  };
  friend bool operator==(PoolAllocator, PoolAllocator) { return true; }
};

/// The completion handler: fills the operation and tells its process. Runs no user code. If it is
/// destroyed without being called (its context went away) the operation counts as aborted.
template <class Operation>
class AsioHandler {
 public:
  using allocator_type = PoolAllocator<void>;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  explicit AsioHandler(Operation* operation) : operation_(operation) {}
  AsioHandler(AsioHandler&& other) noexcept
      : operation_(std::exchange(other.operation_, nullptr)) {}
  AsioHandler(const AsioHandler&) = delete;
  AsioHandler& operator=(const AsioHandler&) = delete;
  ~AsioHandler() {
    if (operation_ != nullptr) operation_->answer();
  }

  template <class... Values>
  void operator()(Values&&... values) {
    Operation* operation = std::exchange(operation_, nullptr);
    operation->set_results(std::forward<Values>(values)...);
    operation->answer();
  }

  allocator_type get_allocator() const noexcept { return {}; }
  cancellation_slot_type get_cancellation_slot() const noexcept { return operation_->slot(); }
  Operation* operation() const { return operation_; }

 private:
  Operation* operation_;
};

}  // namespace otp::io::internal

/// Every Asio operation asks its handler for the executor, giving its own as the default: if its
/// initiation could not name it, this is where the operation's executor becomes known.
template <class Operation, class Executor>
struct boost::asio::associated_executor<otp::io::internal::AsioHandler<Operation>, Executor> {
  using type = Executor;
  static type get(const otp::io::internal::AsioHandler<Operation>&) noexcept { return type(); }
  static const type& get(const otp::io::internal::AsioHandler<Operation>& handler,
                         const Executor& executor) noexcept {
    if (handler.operation() != nullptr) handler.operation()->record(executor);
    return executor;
  }
};
