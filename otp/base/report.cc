#include "otp/base/report.h"

#include <exception>

#include "otp/base/throw_stack.h"

namespace otp {
namespace {

// What fields say of a reason: short, the message has the rest.
constexpr size_t kFieldBytesMax = 512;

// An exception's reason, {{Type,What},Stack}, taken apart.
struct ExceptionReason {
  std::string_view type;
  std::string_view what;
  const TermObject* stack;
};

std::optional<ExceptionReason> as_exception(const ExitReason& reason) {
  const auto& pair = reason.term().items();
  if (reason.term().kind() != Term::Kind::tuple || pair.size() != 2) return std::nullopt;
  const auto& error = pair[0].items();
  if (pair[0].kind() != Term::Kind::tuple || error.size() != 2) return std::nullopt;
  if (error[0].kind() != Term::Kind::atom || error[1].kind() != Term::Kind::string) {
    return std::nullopt;
  }
  const bool stack_or_none =
      pair[1].kind() == Term::Kind::object || pair[1].kind() == Term::Kind::none;
  if (!stack_or_none) return std::nullopt;
  return ExceptionReason{error[0].text(), error[1].text(), pair[1].object()};
}

// Without the stack of an exception, which has a place of its own.
std::string reason_text(const ExitReason* reason, size_t bytes_max) {
  if (reason == nullptr) return "normal";
  BoundedWriter out(bytes_max + kCutMark.size());
  out.section(bytes_max, [&](BoundedWriter& part) {
    if (const auto exception = as_exception(*reason)) {
      part.write("exception ").write(exception->type);
      if (!exception->what.empty()) part.write(": ").write(exception->what);
    } else {
      part.term(reason->term());
    }
  });
  return out.take();
}

// `ledger <0.5.1>`, `<0.5.1>`
void write_process(BoundedWriter& out, std::string_view name, Pid pid) {
  if (!name.empty()) out.section(256, [&](BoundedWriter& part) { part.write(name); }).write(' ');
  out.write(pid.to_string());
}

void write_part(BoundedWriter& out, std::string_view heading, const ReportPart& part,
                size_t bytes_max) {
  if (!part) return;
  out.write(heading);
  write_guarded(out, bytes_max, part);
  out.write('\n');
}

void write_reason(BoundedWriter& out, std::string_view heading, const ExitReason* reason,
                  const StackTrace* stack) {
  out.write(heading).write(reason_text(reason, kReportReasonBytesMax)).write('\n');
  const auto exception = reason == nullptr ? std::nullopt : as_exception(*reason);
  std::string text;
  if (stack != nullptr) {
    text = stack->to_string();
  } else if (exception && exception->stack != nullptr) {
    text = exception->stack->details();
  }
  if (text.empty()) return;
  out.write("thrown at\n");
  out.section(kReportStackBytesMax, [&](BoundedWriter& part) { part.write(text); });
  if (out.text().back() != '\n') out.write('\n');
}

template <class Item, class Write>
void write_list(BoundedWriter& out, const std::vector<Item>& items, Write&& write) {
  out.write('[');
  size_t count = 0;
  for (const Item& item : items) {
    if (count > 0) out.write(',');
    if (count == kReportListMax) {
      out.write("... ").number(items.size()).write(" in all");
      break;
    }
    write(item);
    ++count;
  }
  out.write("]\n");
}

void write_mailbox(BoundedWriter& out, const CrashReport& report) {
  out.write("message_queue_len: ").number(report.mailbox_letters).write('\n');
  if (!report.letter || report.mailbox_letters == 0) return;
  out.write("messages: [");
  out.section(kReportMessageBytesMax, [&](BoundedWriter& part) {
    for (uint64_t index = 0; index < report.mailbox_letters && !part.full(); ++index) {
      if (index > 0) part.write(",\n  ");
      if (index == kReportListMax) {
        part.write("...");
        break;
      }
      write_guarded(part, kFieldBytesMax, [&](BoundedWriter& one) { report.letter(one, index); });
    }
  });
  out.write("]\n");
}

std::string_view context_text(SupervisorReport::Context context) {
  switch (context) {
    case SupervisorReport::Context::child_terminated: return "child_terminated";
    case SupervisorReport::Context::start_error: return "start_error";
    case SupervisorReport::Context::shutdown_error: return "shutdown_error";
    case SupervisorReport::Context::shutdown: return "shutdown";
  }
  return "unknown";
}

void add_if(LogRecord& record, std::string_view key, std::string_view value) {
  if (!value.empty()) record.add(key, std::string(value.substr(0, kFieldBytesMax)));
}

void add_pid(LogRecord& record, std::string_view key, Pid pid) {
  if (pid) record.add(key, pid.to_string());
}

}  // namespace

// Runs a user's callback, which may throw anything; what it wrote before stays.
void write_guarded(BoundedWriter& out, size_t bytes_max, const ReportPart& part) {
  try {
    out.section(bytes_max, part);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    out.section(kFieldBytesMax, [&](BoundedWriter& mention) {
      mention.write("(formatting it failed: ").write(exception_type_name(error)).write(": ");
      mention.write(exception_message(error)).write(')');
    });
  }
}

void fill_record(LogRecord& record, const ServerReport& report) {
  BoundedWriter out(kReportBytesMax);
  out.write("server ");
  write_process(out, report.name.empty() ? report.server : report.name, report.pid);
  out.write(" terminating\n");
  write_part(out, "last message: ", report.last_message, kReportMessageBytesMax);
  if (!report.client.empty()) out.write("client: ").write(report.client).write('\n');
  write_part(out, "state: ", report.state, kReportStateBytesMax);
  write_reason(out, "reason: ", report.reason, report.stack);
  record.message = out.take();
  record.add("report", "server");
  add_if(record, "server", report.server);
  add_if(record, "name", report.name);
  add_pid(record, "pid", report.pid);
  record.add("reason", reason_text(report.reason, kFieldBytesMax));
}

void fill_record(LogRecord& record, const CrashReport& report) {
  BoundedWriter out(kReportBytesMax);
  out.write("crash report: ");
  write_process(out, report.name.empty() ? report.initial_call : report.name, report.pid);
  out.write('\n');
  if (!report.initial_call.empty()) {
    out.write("initial call: ").write(report.initial_call).write('\n');
  }
  write_reason(out, "exit reason: ", report.reason, report.stack);
  if (!report.awaits.empty()) {
    out.write("awaited at\n");
    out.section(kReportStackBytesMax / 2,
                [&](BoundedWriter& part) { part.write(report.awaits.to_string()); });
  }
  out.write("ancestors: ");
  write_list(out, report.ancestors, [&](const std::string& ancestor) { out.write(ancestor); });
  out.write("links: ");
  write_list(out, report.links, [&](Pid pid) { out.write(pid.to_string()); });
  out.write("trap_exit: ").write(report.trap_exit ? "true" : "false").write('\n');
  write_mailbox(out, report);
  record.message = out.take();
  record.add("report", "crash");
  add_if(record, "initial_call", report.initial_call);
  add_if(record, "name", report.name);
  add_pid(record, "pid", report.pid);
  record.add("reason", reason_text(report.reason, kFieldBytesMax));
  record.add("message_queue_len", static_cast<int64_t>(report.mailbox_letters));
}

void fill_record(LogRecord& record, const SupervisorReport& report) {
  BoundedWriter out(kReportBytesMax);
  const bool of_supervisor = report.context == SupervisorReport::Context::shutdown;
  out.write("supervisor ").write(report.supervisor).write(": ");
  out.write(context_text(report.context)).write(", child ").write(report.child_id);
  if (report.child_pid) out.write(' ').write(report.child_pid.to_string());
  out.write(of_supervisor ? ": reached_max_restart_intensity, last reason " : ": ");
  out.write(reason_text(report.reason, kReportReasonBytesMax)).write('\n');
  out.write("child:");
  const auto property = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) out.write(key).write('=').write(value);
  };
  property(" start", report.child_start);
  property(" restart", report.restart);
  property(" shutdown", report.shutdown);
  property(" type", report.child_kind);
  out.write('\n');
  record.message = out.take();
  record.add("report", "supervisor");
  add_if(record, "supervisor", report.supervisor);
  add_if(record, "context", context_text(report.context));
  add_if(record, "child", report.child_id);
  add_pid(record, "child_pid", report.child_pid);
  record.add("reason", of_supervisor ? "reached_max_restart_intensity"
                                     : reason_text(report.reason, kFieldBytesMax));
}

void fill_record(LogRecord& record, const ProgressReport& report) {
  BoundedWriter out(kReportBytesMax);
  out.write("supervisor ").write(report.supervisor).write(": started ").write(report.child_id);
  if (report.child_pid) out.write(' ').write(report.child_pid.to_string());
  record.message = out.take();
  record.add("report", "progress");
  add_if(record, "supervisor", report.supervisor);
  add_if(record, "child", report.child_id);
  add_pid(record, "child_pid", report.child_pid);
  add_if(record, "start", report.child_start);
}

}  // namespace otp
