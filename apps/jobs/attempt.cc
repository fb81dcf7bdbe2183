#include "apps/jobs/attempt.h"

#include "apps/jobs/limiter.h"
#include "apps/jobs/text.h"

namespace jobs {
namespace {

using otp::io::Captured;
using otp::io::ChildExit;

/// The captured bytes; a letter that the cap has cut in two is left out.
std::string kept(const Captured& captured) {
  std::string bytes = captured.bytes;
  if (captured.cut()) drop_unfinished_letter(bytes);
  return bytes;
}

std::string reason_of(const KindSettings& settings, const AttemptEnd& end) {
  if (end.timed_out) {
    return "killed after its timeout of " + std::to_string(settings.timeout.count()) + " ms";
  }
  return end.exit.success() ? std::string() : end.exit.to_string();
}

FinishAttempt without_state(const Job& job, const AttemptEnd& end, Moment now) {
  FinishAttempt finish{.id = job.id, .attempt = job.attempts, .at = now, .due = now};
  if (end.exit.how == ChildExit::How::exited) finish.exit_status = end.exit.code;
  finish.output = kept(end.output);
  finish.output_truncated = end.output.cut();
  finish.error = kept(end.error);
  finish.error_truncated = end.error.cut();
  return finish;
}

void set_state(FinishAttempt& finish, const KindSettings& settings, const Job& job, State failure) {
  const auto due = retry_at(settings, job.attempts - job.interruptions, finish.at);
  finish.state = due ? State::queued : failure;
  finish.due = due.value_or(finish.at);
}

}  // namespace

FinishAttempt conclude(const KindSettings& settings, const Job& job, const AttemptEnd& end,
                       Moment now) {
  FinishAttempt finish = without_state(job, end, now);
  if (!end.timed_out && end.exit.success()) {
    finish.state = State::done;
    return finish;
  }
  // An exit status speaks for itself beside the command's own words; any other end is told first.
  const bool words_suffice = end.exit.how == ChildExit::How::exited && !end.timed_out;
  if (finish.error.empty()) {
    finish.error = reason_of(settings, end);
  } else if (!words_suffice) {
    finish.error = reason_of(settings, end) + "\n" + finish.error;
  }
  set_state(finish, settings, job, end.timed_out ? State::timeout : State::failed);
  return finish;
}

FinishAttempt conclude(const KindSettings& settings, const Job& job,
                       const otp::io::SystemError& failed, Moment now) {
  FinishAttempt finish{.id = job.id, .attempt = job.attempts, .at = now, .due = now};
  finish.error = "cannot " + failed.to_string();
  set_state(finish, settings, job, State::failed);
  return finish;
}

FinishAttempt interrupt(const KindSettings& settings, const Job& job, const AttemptEnd& end,
                        Moment now) {
  FinishAttempt finish = without_state(job, end, now);
  const bool again = settings.on_interrupt == OnInterrupt::requeue;
  finish.state = again ? State::queued : State::failed;
  finish.interrupted = true;
  const std::string said = finish.error.empty() ? "" : "\n" + finish.error;
  finish.error = "interrupted: the service was stopped" + said;
  return finish;
}

}  // namespace jobs
