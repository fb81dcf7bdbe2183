#include "otp/runtime/fault.h"

#include "otp/base/throw_stack.h"
#include "otp/runtime/process.h"
#include "otp/runtime/runtime_log.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {

// Addresses only: written out as text when somebody reads the reason, which is rare.
class StackTerm final : public TermObject {
 public:
  explicit StackTerm(const StackTrace& stack) : stack_(stack) {}
  std::string to_string() const override { return stack_.to_string(); }

 private:
  StackTrace stack_;
};

}  // namespace

ExitReason reason_of(std::exception_ptr exception) {
  if (exception == nullptr) return ExitReason::normal();
  if (const Exit* exit = otp::exception_as<Exit>(exception)) return exit->reason();
  Term stack;
  if (auto trace = throw_stack(exception)) stack = Term(std::make_shared<StackTerm>(*trace));
  return ExitReason::exception(exception_type_name(exception), exception_message(exception),
                               std::move(stack));
}

void report_crash(Process& process, const ExitReason& reason) {
  LogSink* log = process.system().log();
  if (log == nullptr || !reason.is_abnormal()) return;
  std::string text = "crash report: ";
  text += process.label();
  text += ' ' + process.pid().to_string();
  if (std::string name = process.system().names().name_of(process.id()); !name.empty()) {
    text += " (" + name + ")";
  }
  if (process.parent() != 0) text += ", started by " + Pid{0, process.parent()}.to_string();
  text += ", exited with " + reason.to_string();
  log_runtime(log, LogLevel::error, std::move(text));
}

}  // namespace otp::internal
