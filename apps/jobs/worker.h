#pragma once

#include <optional>

#include "apps/jobs/clock.h"
#include "apps/jobs/database.h"
#include "apps/jobs/job.h"
#include "apps/jobs/readiness.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/spawner.h"
#include "otp/behaviour/gen_server.h"
#include "otp/io/child_pipes.h"

namespace jobs {

/// To the owner of a worker: its attempt has ended and is written down.
struct Concluded {
  JobId job = 0;
  State state = State::done;  ///< queued: to be run again at `due`
  Moment due = {};
};

/// Runs one attempt: the command by way of the spawner, its input and output, its timeout; and
/// writes down how it ended. It goes on asking a store that cannot write.
class Worker {
 public:
  struct Args {
    Job job = {};                 ///< as StartAttempt gave it
    otp::unchecked<Clock> clock;  ///< the store's
    otp::Pid owner = {};
  };
  struct Begin {};
  struct Cancel {};
  struct TimedOut {};
  struct KillNow {};
  using Info = otp::Protocol<CommandStreams, CommandStarted, CommandFailed, CommandEnded,
                             DescriptorsReady, TimedOut, KillNow>;

  explicit Worker(Args args);
  otp::Init init() { return otp::ok().then_continue(Begin{}); }
  void handle_continue(Begin);
  /// Kills the command; the job's state is the canceller's business.
  void handle_cast(Cancel);
  void handle_info(CommandStreams message);
  void handle_info(CommandStarted message);
  otp::Async<otp::CastResult> handle_info(CommandFailed message);
  otp::Async<otp::CastResult> handle_info(CommandEnded message);
  void handle_info(DescriptorsReady);
  void handle_info(TimedOut);
  void handle_info(KillNow);
  void terminate(otp::ExitReason reason);

 private:
  const KindSettings& settings() const;
  Moment now() const;
  void end_command();
  void move_bytes();
  otp::Async<otp::CastResult> lost();
  otp::Async<otp::CastResult> write_down(FinishAttempt finish);

  Args args_;
  std::optional<otp::io::ChildPipes> pipes_;
  std::optional<Readiness> readiness_;
  Moment began_{};
  bool timed_out_ = false;
  bool ending_ = false;  // told to end
};

}  // namespace jobs
