#pragma once

#include <cstddef>
#include <string>
#include <string_view>

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

/// A supervisor of more children than this that stops them all at once says only how many.
inline constexpr size_t kStoppedLinesMax = 10;

/// Logs that the calling supervisor stopped a child, which took that long: at level info, in
/// kStopLogDomain. `id` may be empty.
void report_stopped(std::string_view id, Pid pid, const ExitReason& reason, Duration took);
/// Logs likewise that a child had ended by itself before its turn to be stopped came.
void report_had_ended(std::string_view id, Pid pid, const ExitReason& reason);
/// report_stopped() for so many children together.
void report_stopped(size_t count, Duration took);

/// Logs as an error that a child was killed this long ago and has not ended: the callback that it
/// is in does not return.
void report_unkilled(std::string_view id, Pid pid, Duration since);
/// The same for so many children together.
void report_unkilled(size_t count, Duration since);

/// When that is said: so long after the kill, and from then on every so often.
inline constexpr Duration kUnkilledFirst = std::chrono::seconds(5);
inline constexpr Duration kUnkilledAgain = std::chrono::seconds(10);

}  // namespace otp::internal
