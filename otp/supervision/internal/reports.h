#pragma once

#include <string>

#include "otp/base/exit_reason.h"
#include "otp/base/report.h"
#include "otp/supervision/child_spec.h"

/// What supervisors log.
namespace otp::internal {

/// `5s`, `1500ms`, `infinity`, `brutal_kill`: as configuration files write it.
std::string shutdown_text(Shutdown shutdown);
std::string duration_text(Duration duration);

/// The calling process's registered name, else its pid.
std::string own_name();

/// Logs that the calling supervisor met the end of a child, or its own limit.
void report_child(SupervisorReport::Context context, const ExitReason& reason,
                  const ChildSpec& spec, Pid pid);
/// Logs that a child was started, at level info.
void report_progress(const ChildSpec& spec, Pid pid);

}  // namespace otp::internal
