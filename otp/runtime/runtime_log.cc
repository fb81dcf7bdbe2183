#include "otp/runtime/runtime_log.h"

#include "otp/base/stack_trace.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

void log_runtime(LogSink* log, LogLevel level, std::string text) {
  if (log == nullptr) return;
  otp::log(*log, level, "otp.runtime",
           [&](LogRecord& record) { record.message = std::move(text); });
}

void report_stuck(LogSink* log, Env& holder, std::chrono::nanoseconds after) {
  if (log == nullptr) return;
  // The callback still runs: of the process only its pid is read, which is constant while it runs.
  Process* process = holder.process;
  std::string text = "a callback of ";
  text += process == nullptr ? "no process" : process->pid().to_string();
  if (process != nullptr) {
    if (std::string name = process->system().names().name_of(process->id()); !name.empty()) {
      text += " (" + name + ")";
    }
  }
  text += " runs for more than ";
  text += std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(after).count());
  text += " ms; its core goes to a spare thread";
  auto stack = capture_thread(holder.tid.load(relaxed), std::chrono::milliseconds(100));
  if (stack) text += "; it is at\n" + stack->to_string();
  log_runtime(log, LogLevel::warning, std::move(text));
}

}  // namespace otp::internal
