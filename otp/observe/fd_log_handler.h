#pragma once

/// A handler that writes to a file descriptor: standard output, mostly.
///
///   FdLogOptions options{.fd = STDOUT_FILENO, .format = LogFormat::json};
///   otp::Result<std::unique_ptr<LogHandler>> handler = start_fd_log_handler(options);
///
/// Callers put records into a bounded queue and go on; one thread writes. When nobody reads, the
/// queue fills up, further records are dropped and counted, and a line says how many as soon as the
/// reader goes on. The same for a reader that went away, a full disk, and for more records in a
/// moment than is sensible. The descriptor's own flags are never changed: standard output is shared
/// with the shell that started us.
///
/// OTP: logger_std_h with its overload protection. Differs: no synchronous mode, and a stalled
/// reader never holds up the one who logs.

#include <chrono>
#include <cstddef>
#include <memory>

#include "otp/base/result.h"
#include "otp/observe/log_format.h"
#include "otp/observe/log_handler.h"

namespace otp::observe {

struct FdLogOptions {
  int fd = 1;  ///< duplicated: the caller may close its own
  LogFormat format = LogFormat::text;
  LogLevel level = LogLevel::debug;
  /// Memory for records that wait to be written. The last quarter is kept for errors and worse.
  size_t queue_bytes_max = size_t{4} << 20;
  /// More records than this in one window are dropped; 0 = no limit.
  uint64_t burst_records_max = 10'000;
  std::chrono::milliseconds burst_window = std::chrono::seconds(1);
  /// After a write that failed (reader gone, disk full), how long records are dropped untried.
  std::chrono::milliseconds retry_after = std::chrono::seconds(1);
};

/// Starts the writing thread (all its signals blocked). Make it after fork, not before.
///
/// Errors: {log_handler, Text} when the descriptor is not open, or there are no more descriptors or
/// threads.
Result<std::unique_ptr<LogHandler>> start_fd_log_handler(const FdLogOptions& options);

}  // namespace otp::observe
