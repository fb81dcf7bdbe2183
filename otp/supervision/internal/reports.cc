#include "otp/supervision/internal/reports.h"

#include "otp/base/enum_names.h"
#include "otp/supervision/supervisor.h"

namespace otp::internal {

namespace {
constexpr std::string_view kDomain = "otp.supervisor";
}

std::string duration_text(Duration duration) {
  const int64_t ns = duration.count();
  if (ns % 1'000'000'000 == 0) return std::to_string(ns / 1'000'000'000) + "s";
  if (ns % 1'000'000 == 0) return std::to_string(ns / 1'000'000) + "ms";
  if (ns % 1'000 == 0) return std::to_string(ns / 1'000) + "us";
  return std::to_string(ns) + "ns";
}

std::string shutdown_text(Shutdown shutdown) {
  if (shutdown.is_brutal_kill()) return "brutal_kill";
  if (shutdown.is_infinity()) return "infinity";
  return duration_text(shutdown.timeout().duration());
}

std::string own_name() {
  LibraryScope scope(env());
  Process& process = self_process();
  std::string name = process.system().names().name_of(process.id());
  return name.empty() ? process.pid().to_string() : name;
}

void report_child(SupervisorReport::Context context, const ExitReason& reason,
                  const ChildSpec& spec, Pid pid) {
  LogSink* sink = self_process().system().log();
  if (sink == nullptr) return;
  log(*sink, LogLevel::error, kDomain, [&](LogRecord& record) {
    const std::string name = own_name();
    const std::string shutdown = shutdown_text(spec.shutdown_or_default());
    fill_record(record, SupervisorReport{.supervisor = name,
                                         .context = context,
                                         .reason = &reason,
                                         .child_id = spec.id,
                                         .child_pid = pid,
                                         .child_start = spec.server,
                                         .restart = enum_name(spec.restart),
                                         .shutdown = shutdown,
                                         .child_kind = enum_name(spec.type)});
  });
}

void report_progress(const ChildSpec& spec, Pid pid) {
  LogSink* sink = self_process().system().log();
  if (sink == nullptr) return;
  log(*sink, LogLevel::info, kDomain, [&](LogRecord& record) {
    const std::string name = own_name();
    fill_record(
        record,
        ProgressReport{
            .supervisor = name, .child_id = spec.id, .child_pid = pid, .child_start = spec.server});
  });
}

namespace {

// `ledger <0.5.1>`, or the pid alone.
std::string child_text(std::string_view id, Pid pid) {
  return id.empty() ? pid.to_string() : std::string(id) + " " + pid.to_string();
}

std::string many_text(size_t count) { return std::to_string(count) + " children"; }

int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

/// A record about children: what `build(supervisor's name, record)` says of them.
template <class Build>
void say(LogLevel level, std::string_view domain, Build build) {
  LogSink* sink = self_process().system().log();
  if (sink == nullptr) return;
  log(*sink, level, domain, [&](LogRecord& record) {
    const std::string name = own_name();
    record.message = "supervisor " + name + ": ";
    record.add("report", "stop").add("supervisor", name);
    build(record);
  });
}

void add_child(LogRecord& record, std::string_view id, Pid pid) {
  if (!id.empty()) record.add("child", std::string(id));
  record.add("child_pid", pid.to_string());
}

}  // namespace

void report_stopped(std::string_view id, Pid pid, const ExitReason& reason, Duration took) {
  say(LogLevel::info, kStopLogDomain, [&](LogRecord& record) {
    const std::string why = reason.to_string();
    const int64_t ms = milliseconds(took);
    record.message +=
        "stopped child " + child_text(id, pid) + " (" + why + ", " + std::to_string(ms) + " ms)";
    add_child(record, id, pid);
    record.add("reason", why).add("took_ms", ms);
  });
}

void report_had_ended(std::string_view id, Pid pid, const ExitReason& reason) {
  say(LogLevel::info, kStopLogDomain, [&](LogRecord& record) {
    const std::string why = reason.to_string();
    record.message += "child " + child_text(id, pid) + " had ended (" + why + ")";
    add_child(record, id, pid);
    record.add("reason", why);
  });
}

void report_stopped(size_t count, Duration took) {
  say(LogLevel::info, kStopLogDomain, [&](LogRecord& record) {
    const int64_t ms = milliseconds(took);
    record.message += "stopped " + many_text(count) + " (" + std::to_string(ms) + " ms)";
    record.add("children", static_cast<int64_t>(count)).add("took_ms", ms);
  });
}

void report_unkilled(std::string_view id, Pid pid, Duration since) {
  say(LogLevel::error, kDomain, [&](LogRecord& record) {
    record.message +=
        "child " + child_text(id, pid) + " was killed " + duration_text(since) +
        " ago and has not ended: its callback does not return, and nothing can end it";
    add_child(record, id, pid);
  });
}

void report_unkilled(size_t count, Duration since) {
  say(LogLevel::error, kDomain, [&](LogRecord& record) {
    record.message += many_text(count) + " were killed " + duration_text(since) +
                      " ago and have not ended: their callbacks do not return";
    record.add("children", static_cast<int64_t>(count));
  });
}

}  // namespace otp::internal
