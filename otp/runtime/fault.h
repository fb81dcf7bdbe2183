#pragma once

#include <exception>
#include <string>

#include "otp/base/exit_reason.h"

namespace otp::internal {

class Process;

/// The exit reason for an exception that left a callback: an otp::Exit's own reason, else
/// {{Type,What},Stack} with the stack of the throw, which the reason's text shows by its first line
/// and a report of the process in full. Null: `normal`.
ExitReason reason_of(std::exception_ptr exception);

/// Logs a crash report of `process` if its reason is abnormal: what it was, why, where that was
/// thrown and awaited, whom it descends from, what it has left unread. `thrown`: what ended it, or
/// null. OTP: proc_lib's crash report.
void report_crash(Process& process, const ExitReason& reason, const std::exception_ptr& thrown);

/// The name that `pid` has in the process's System, else the pid as text.
std::string name_or_pid(Process& process, uint64_t pid);

}  // namespace otp::internal
