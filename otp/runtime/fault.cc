#include "otp/runtime/fault.h"

#include <vector>

#include "otp/base/report.h"
#include "otp/base/throw_stack.h"
#include "otp/runtime/process.h"
#include "otp/runtime/runtime_log.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {

// Addresses only: written out as text when somebody reads the reason, which is rare. Reasons travel
// from process to process, each of which reports them: within a reason a stack is its first line.
class StackTerm final : public TermObject {
 public:
  explicit StackTerm(const StackTrace& stack) : stack_(stack) {}
  std::string to_string() const override {
    const std::vector<StackFrame> frames = stack_.resolve();
    return frames.empty() ? "[]" : "[thrown at " + frames.front().to_string() + "]";
  }
  std::string details() const override { return stack_.to_string(); }

 private:
  StackTrace stack_;
};

}  // namespace

ExitReason reason_of(std::exception_ptr exception) {
  if (exception == nullptr) return ExitReason::normal();
  if (const Exit* exit = otp::exception_as<Exit>(exception)) return exit->reason();
  Term stack;
  if (auto trace = throw_stack(exception)) stack = Term(std::make_shared<StackTerm>(*trace));
  std::string type = exception_type_name(exception);
  std::string text = exception_message(exception);
  if (otp::exception_as<std::exception>(exception) != nullptr) {
    return ExitReason::exception(std::move(type), std::move(text), std::move(stack));
  }
  Term thrown = Term::tuple({Term::atom(std::move(type)), Term(std::move(text))});
  return ExitReason(
      Term::tuple({Term::tuple({Term::literal("nocatch"), std::move(thrown)}), std::move(stack)}));
}

std::string name_or_pid(Process& process, uint64_t pid) {
  std::string name = process.system().names().name_of(pid);
  return name.empty() ? Pid{0, pid}.to_string() : name;
}

namespace {

// The oldest messages, as many as a report shows.
std::vector<const Letter*> oldest_messages(Process& process) {
  std::vector<const Letter*> letters;
  const Letter* letter = process.queue_first();
  for (; letter != nullptr && letters.size() < kReportListMax;
       letter = process.queue_next(letter)) {
    letters.push_back(letter);
  }
  return letters;
}

}  // namespace

void report_crash(Process& process, const ExitReason& reason, const std::exception_ptr& thrown) {
  LogSink* sink = process.system().log();
  if (sink == nullptr || !reason.is_abnormal()) return;
  log(*sink, LogLevel::error, "otp.proc_lib", [&](LogRecord& record) {
    const std::string name = process.system().names().name_of(process.id());
    const auto stack = thrown == nullptr ? std::nullopt : throw_stack(thrown);
    CrashReport report{.initial_call = process.label(), .name = name, .pid = process.pid()};
    report.reason = &reason;
    report.stack = stack ? &*stack : nullptr;
    if (thrown != nullptr) report.awaits = await_stack(thrown);
    for (uint64_t each : process.ancestors()) {
      if (each != 0) report.ancestors.push_back(name_or_pid(process, each));
    }
    process.for_each_link([&](uint64_t peer) { report.links.push_back(Pid{0, peer}); });
    report.trap_exit = process.trap_exit();
    const std::vector<const Letter*> letters = oldest_messages(process);
    report.mailbox_letters = process.queue_length();
    report.letter = [&](BoundedWriter& out, uint64_t index) {
      UserScope user(env());  // a message may format itself
      format_letter(out, *letters[index]);
    };
    fill_record(record, report);
  });
}

}  // namespace otp::internal
