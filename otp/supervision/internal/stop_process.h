#pragma once

#include <string_view>

#include "otp/async/async.h"
#include "otp/base/exit_reason.h"
#include "otp/supervision/child_spec.h"

/// What Supervisor and DynamicSupervisor do with the process of a child.
namespace otp::internal {

/// Stops a linked process as `shutdown` says, waits until it is gone and logs that. Returns its
/// exit reason. `id` is what it is called in the log: lives until then, may be empty.
///
/// One that was killed and whose callback never returns is waited for without an end, but not in
/// silence: report_unkilled().
///
/// The process is monitored first, and its DOWN is what counts: a naughty child may have unlinked
/// itself, and waiting for its EXIT would hang the supervisor. The EXIT that its end leaves behind
/// names a process that the supervisor no longer knows, and is dropped when its turn comes.
Async<ExitReason> stop_process(std::string_view id, Pid pid, Shutdown shutdown);

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
