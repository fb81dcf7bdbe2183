#pragma once

#include <cstdint>

#include "otp/base/timeout.h"
#include "otp/io/internal/memory_order.h"
#include "otp/runtime/process.h"
#include "otp/runtime/system_impl.h"

namespace otp::io::internal {

/// One operation outside the process that the process waits for, as an object inside the frame of
/// the awaiting coroutine. Its memory stays until complete() was called, also when the process is
/// killed meanwhile (two-phase kill) or the time given to wait() is over.
///
/// Life: enlist() and wait() in the process; complete() exactly once, by any thread; then finish()
/// in the process, unless it was killed: then the frame is destroyed instead.
class ProcessOperation : public otp::internal::PendingOperation {
 public:
  ProcessOperation() = default;
  ProcessOperation(const ProcessOperation&) = delete;
  ProcessOperation& operator=(const ProcessOperation&) = delete;

  // -- In the process, inside the library.

  /// Makes it known to the calling process. Then start it, then wait().
  void enlist();
  /// The process waits for the answer; at `deadline` request_cancel() is called. True once
  /// cancelled for that reason: see expired().
  void wait(int64_t deadline);
  /// After the wait, when the process goes on.
  void finish();
  /// The process waited for longer than it wanted to, and had the operation cancelled. It may have
  /// succeeded all the same.
  bool expired() const { return cancel_requested_; }
  otp::internal::SystemImpl& system() const { return *system_; }

  /// Tells the process that the operation has answered. Its results must be in place. The object
  /// must not be touched afterwards.
  void complete() noexcept;
  /// complete() at that time of the System's clock, which somebody else may still prevent.
  void complete_at(int64_t time);
  /// Prevents what complete_at() announced. False: too late, or nothing was announced.
  bool take_back();

 protected:
  ~ProcessOperation() = default;
  /// Makes the operation answer soon. Called at most once, in the process, inside the library;
  /// complete() may have been called already.
  virtual void request_cancel() noexcept = 0;

 private:
  void cancel() noexcept final;

  otp::internal::SystemImpl* system_ = nullptr;
  uint64_t pid_ = 0;
  otp::internal::TimerId timer_ = 0;
  uint16_t timer_core_ = 0;
  bool cancel_requested_ = false;
};

}  // namespace otp::io::internal
