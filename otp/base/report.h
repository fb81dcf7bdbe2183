#pragma once

/// The reports that the runtime and the behaviours log: what they say and how large they may be.
///
///   otp::log(sink, LogLevel::error, "otp.gen_server", [&](otp::LogRecord& record) {
///     ServerReport report{.server = "Ledger", .name = "ledger", .pid = pid, .reason = reason};
///     report.last_message = [&](BoundedWriter& out) { format_value(out, message); };
///     report.state = [&](BoundedWriter& out) { format_value(out, state); };
///     otp::fill_record(record, report);
///   });
///
/// A report is at most kReportBytesMax long whatever the size of the state, the messages, the
/// reason and the mailbox; values are printed by callbacks into a bounded writer, so that the work
/// is bounded as well. A callback that throws is mentioned in its place.
///
/// OTP: the reports of gen_server, proc_lib, supervisor; the same words where they exist.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/await_stack.h"
#include "otp/base/bounded_writer.h"
#include "otp/base/exit_reason.h"
#include "otp/base/log.h"
#include "otp/base/pid.h"
#include "otp/base/stack_trace.h"

namespace otp {

/// The size of a report's message. Its parts have limits of their own, which add up to less.
inline constexpr size_t kReportBytesMax = 32 * 1024;
inline constexpr size_t kReportReasonBytesMax = 4 * 1024;
inline constexpr size_t kReportMessageBytesMax = 4 * 1024;
inline constexpr size_t kReportStateBytesMax = 8 * 1024;
inline constexpr size_t kReportStackBytesMax = 8 * 1024;
inline constexpr size_t kReportListMax = 20;  ///< of ancestors, links, letters

/// Prints a part of a report; empty when there is nothing to say.
using ReportPart = std::function<void(BoundedWriter&)>;

/// Lets `part` write at most `bytes_max` bytes; what it throws is mentioned behind what it wrote.
void write_guarded(BoundedWriter& out, size_t bytes_max, const ReportPart& part);

/// A server's callback failed: what it was doing. Logged beside a CrashReport.
struct ServerReport {
  std::string_view server = {};  ///< its type, `Ledger`
  std::string_view name = {};    ///< registered; may be empty
  Pid pid = {};
  ReportPart last_message = {};
  ReportPart state = {};
  const ExitReason* reason = nullptr;
  const StackTrace* stack = nullptr;  ///< of the throw; null when there is none
  std::string_view client = {};       ///< the caller of the last message, `<0.7.1>`; may be empty
};

/// A process ended abnormally.
struct CrashReport {
  std::string_view initial_call = {};  ///< the server's type or the function
  std::string_view name = {};
  Pid pid = {};
  const ExitReason* reason = nullptr;
  const StackTrace* stack = nullptr;
  AwaitStack awaits = {};                   ///< of the throw
  std::vector<std::string> ancestors = {};  ///< names or pids, the parent first
  std::vector<Pid> links = {};
  uint64_t mailbox_letters = 0;
  /// Prints the letter at that index (from 0, the oldest); asked for the first kReportListMax.
  std::function<void(BoundedWriter&, uint64_t)> letter = {};
  bool trap_exit = false;
};

/// A supervisor met the end of a child, or its own limits.
struct SupervisorReport {
  enum class Context {
    child_terminated,
    start_error,
    shutdown_error,
    shutdown,  ///< reached_max_restart_intensity
  };
  std::string_view supervisor = {};  ///< name, or pid as text
  Context context = Context::child_terminated;
  const ExitReason* reason = nullptr;
  std::string_view child_id = {};
  Pid child_pid = {};
  std::string_view child_start = {};  ///< the server's type
  std::string_view restart = {};      ///< permanent, transient, temporary
  std::string_view shutdown = {};     ///< `5s`, `infinity`, `brutal_kill`
  std::string_view child_kind = {};   ///< worker, supervisor
};

/// A child was started. Logged at level info.
struct ProgressReport {
  std::string_view supervisor = {};
  std::string_view child_id = {};
  Pid child_pid = {};
  std::string_view child_start = {};
};

/// Fills message and fields; the rest of the record stays as it is.
void fill_record(LogRecord& record, const ServerReport& report);
void fill_record(LogRecord& record, const CrashReport& report);
void fill_record(LogRecord& record, const SupervisorReport& report);
void fill_record(LogRecord& record, const ProgressReport& report);

}  // namespace otp
