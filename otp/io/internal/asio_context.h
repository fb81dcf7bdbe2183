#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>

#include "otp/base/atomic.h"
#include "otp/io/internal/memory_order.h"
#include "otp/runtime/poller.h"
#include "otp/runtime/system_impl.h"

namespace otp::io::internal {

/// One core's io_context as its poller.
///
/// Park is one timer, armed to the deadline, and run_one(): run_for would round 100 µs up to 1 ms.
/// Wake is a write to an eventfd: half of what posting costs. Invariants:
///  (A1) Only the holder of the core runs the context, so its handlers never run at once.
///  (A2) The eventfd always has a read pending; its handler sets woken_.
///  (A3) armed_at_ is the deadline of the timer's pending wait, kNever when there is none.
class AsioPoller final : public Poller {
 public:
  AsioPoller();
  ~AsioPoller() override;

  void park(int64_t timeout_ns) override;
  void wake() noexcept override;
  void poll() override { context_.poll(); }

  boost::asio::io_context& context() { return context_; }
  /// Sockets that live on this context: where the next one goes is decided by it.
  Atomic<uint32_t>& sockets() { return sockets_; }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  void read_wake();
  void arm(int64_t at);

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  boost::asio::steady_timer timer_;
  boost::asio::posix::stream_descriptor wake_fd_;
  const int wake_number_;  // the same descriptor, for wake()
  Atomic<uint32_t> sockets_{0};
  // The holder of the core only.
  uint64_t wake_count_ = 0;    // what is read from the eventfd
  int64_t armed_at_ = kNever;  // (A3)
  bool woken_ = false;         // (A2)
  bool nothing_ = false;       // the handler that just ran was that of a wait given up
};

/// The poller of core `index`, or null if that is none on Asio.
AsioPoller* asio_poller(otp::internal::SystemImpl& system, uint32_t index);
/// That of the calling thread's core (core 0 for a thread that has none), or null.
AsioPoller* this_asio_poller();
/// The one with the fewest sockets, or null.
AsioPoller* least_loaded(otp::internal::SystemImpl& system);

}  // namespace otp::io::internal
