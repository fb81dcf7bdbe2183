#pragma once

#include "otp/async/async.h"
#include "otp/base/exit_reason.h"
#include "otp/supervision/child_spec.h"

/// What Supervisor and DynamicSupervisor do with the process of a child.
namespace otp::internal {

/// Stops a linked process as `shutdown` says and waits until it is gone. Returns its exit reason.
///
/// The process is monitored first, and its DOWN is what counts: a naughty child may have unlinked
/// itself, and waiting for its EXIT would hang the supervisor. The EXIT that its end leaves behind
/// names a process that the supervisor no longer knows, and is dropped when its turn comes.
Async<ExitReason> stop_process(Pid pid, Shutdown shutdown);

/// Whether ending with `reason` after it was told to stop is an error of a child with this
/// specification. OTP: do_terminate/2.
bool is_shutdown_error(const ExitReason& reason, Restart restart, Shutdown shutdown);

/// Whether a child that ended with `reason` is restarted.
inline bool wants_restart(Restart restart, const ExitReason& reason) {
  return restart == Restart::permanent || (restart == Restart::transient && reason.is_abnormal());
}

/// Calls the start function; whatever it throws is its result's error.
Async<Result<Started>> start_process(const ChildSpec& spec);

}  // namespace otp::internal
