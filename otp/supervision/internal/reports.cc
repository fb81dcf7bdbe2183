#include "otp/supervision/internal/reports.h"

#include "otp/base/enum_names.h"

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

}  // namespace otp::internal
