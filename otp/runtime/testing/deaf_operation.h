#pragma once

#include <coroutine>

#include "otp/base/pid.h"
#include "otp/runtime/system_impl.h"

/// For tests of what cannot be ended.
namespace otp::internal {

/// An operation outside that hears of no cancellation: its process cannot end before it is
/// answered, like one whose callback does not return, which virtual time has no place for.
struct DeafOperation final : PendingOperation {
  Pid waits;
  void cancel() noexcept override {}
  /// Once. Threads: a process, or a thread outside within an OutsideScope.
  void answer() {
    LibraryScope scope(env());
    Letter* letter = make_signal(LetterKind::wake);
    letter->reference = reference;
    env().system->deliver(waits.id, letter);
  }
};

struct WaitForDeaf {
  DeafOperation* operation;
  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    LibraryScope scope(env());
    Process& process = self_process();
    operation->waits = process.pid();
    operation->reference = process.new_reference();
    process.add_operation(*operation);
    process.expect_reply(operation->reference, 0);
    process.begin_wait(Process::Wait::operation, TimerWheel::kNever);
  }
  void await_resume() const {}
};

}  // namespace otp::internal
