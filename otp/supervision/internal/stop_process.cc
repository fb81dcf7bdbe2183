#include "otp/supervision/internal/stop_process.h"

#include "otp/runtime/fault.h"
#include "otp/supervision/internal/reports.h"

namespace otp::internal {

namespace {

Async<std::optional<Down>> down_of(Reference monitor_of, Timeout limit) {
  auto is_it = [monitor_of](const Down& down) { return down.reference == monitor_of; };
  co_return co_await receive<Down>(is_it, after(limit));
}

}  // namespace

Async<ExitReason> stop_process(std::string_view id, Pid pid, Shutdown shutdown) {
  SystemImpl& system = self_process().system();
  const int64_t began = system.now();
  Reference reference = monitor(pid);
  std::optional<Down> down;
  if (!shutdown.is_brutal_kill()) {
    otp::exit(pid, ExitReason::shutdown());
    down = co_await down_of(reference, shutdown.timeout());
  }
  if (!down) {
    otp::exit(pid, ExitReason::kill());
    down = co_await down_of(reference, kUnkilledFirst);
    for (Duration since = kUnkilledFirst; !down; since += kUnkilledAgain) {
      report_unkilled(id, pid, since);
      down = co_await down_of(reference, kUnkilledAgain);
    }
  }
  // Its EXIT came right before; left in the mailbox, it would be walked over at every later stop.
  auto from_it = [pid](const ExitMessage& message) { return message.from == pid; };
  auto ended = co_await receive<ExitMessage>(from_it, after(Duration(0)));
  // It had ended before the monitor was set: then the EXIT has the reason.
  ExitReason reason = down->reason.is("noproc") && ended ? ended->reason : down->reason;
  report_stopped(id, pid, reason, Duration(system.now() - began));
  co_return reason;
}

bool is_shutdown_error(const ExitReason& reason, Restart restart, Shutdown shutdown) {
  if (shutdown.is_brutal_kill() && reason.is("killed")) return false;
  if (reason.is("shutdown")) return shutdown.is_brutal_kill() && restart == Restart::permanent;
  return restart == Restart::permanent || !(reason.is_shutdown() || reason.is_normal());
}

Async<Result<Started>> start_process(const ChildSpec& spec) {
  try {
    StartSettings settings{.mailbox = spec.mailbox, .drop_expired = spec.drop_expired};
    co_return co_await spec.start->start(settings);
  } catch (...) {
    co_return reason_of(std::current_exception());
  }
}

}  // namespace otp::internal
