#pragma once

#include <exception>

#include "otp/base/exit_reason.h"

namespace otp::internal {

class Process;

/// The exit reason for an exception that left a callback: an otp::Exit's own reason, else
/// {{Type,What},Stack} with the stack of the throw. Null: `normal`.
ExitReason reason_of(std::exception_ptr exception);

/// Logs the end of `process` if its reason is abnormal: what it was, why, and where that was
/// thrown.
void report_crash(Process& process, const ExitReason& reason);

}  // namespace otp::internal
