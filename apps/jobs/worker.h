#pragma once

#include <optional>

#include "apps/jobs/clock.h"
#include "apps/jobs/database.h"
#include "apps/jobs/job.h"
#include "apps/jobs/settings.h"
#include "otp/behaviour/gen_server.h"
#include "otp/io/child_server.h"

namespace jobs {

class Store;

/// To the owner of a worker: its attempt has ended and is written down.
struct Concluded {
  JobId job = 0;
  State state = State::done;  ///< queued: to be run again at `due`
  Moment due = {};
  bool stopping = false;  ///< the workers are being stopped: start no more
};

/// Runs one attempt: the command, its input and output, its timeout; and writes down how it ended.
/// It goes on asking a store that cannot write.
///
/// Told to shut down it asks its command to end (SIGTERM, later SIGKILL), and its job is queued
/// again unless it was done by then.
class Worker {
 public:
  struct Args {
    Job job = {};                 ///< as StartAttempt gave it
    otp::unchecked<Clock> clock;  ///< the store's
    otp::Pid owner = {};
    otp::Name<Store> store = {};
    otp::Name<otp::io::ChildServer> spawner = {};
  };
  struct Begin {};
  struct Cancel {};
  struct TimedOut {};
  struct KillNow {};
  using Info = otp::Protocol<otp::io::ChildNews, TimedOut, KillNow>;

  explicit Worker(Args args);
  otp::Init init();
  otp::Async<otp::CastResult> handle_continue(Begin);
  /// Kills the command; the job's state is the canceller's business.
  void handle_cast(Cancel);
  otp::Async<otp::CastResult> handle_info(otp::io::ChildNews news);
  otp::Async<otp::CastResult> handle_info(otp::Down down);
  void handle_info(TimedOut);
  void handle_info(KillNow);
  otp::Async<void> terminate(otp::ExitReason reason);

  /// How long a supervisor has to wait for the end of its command.
  static otp::Shutdown shutdown_of(const KindSettings& settings);

 private:
  const KindSettings& settings() const;
  Moment now() const;
  void end_command();
  otp::Async<otp::CastResult> ended(std::optional<otp::io::ChildOutcome> outcome);
  otp::Async<otp::CastResult> write_down(FinishAttempt finish);

  Args args_;
  std::optional<otp::io::ChildProgram> program_;
  Moment began_{};
  bool timed_out_ = false;
  bool ending_ = false;    // told to end
  bool stopping_ = false;  // by the supervisor
};

}  // namespace jobs
