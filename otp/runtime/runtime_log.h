#pragma once

#include <chrono>
#include <string>

#include "otp/base/log.h"

namespace otp::internal {

struct Env;

/// Logs a line of the runtime's own; `log` may be null.
void log_runtime(LogSink* log, LogLevel level, std::string text);

/// Reports a callback that ran for more than `after` and lost its core: its process and its stack.
/// Called by the monitor; the callback still runs.
void report_stuck(LogSink* log, Env& holder, std::chrono::nanoseconds after);

}  // namespace otp::internal
