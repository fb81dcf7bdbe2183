#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/clock.h"
#include "apps/jobs/job_json.h"
#include "apps/jobs/limiter.h"
#include "apps/jobs/store.h"
#include "apps/jobs/worker.h"
#include "otp/behaviour/gen_server.h"
#include "otp/config/required.h"

namespace otp {
class DynamicSupervisor;
}

namespace jobs {

/// Accepts a job: the answer comes when it is on disk, and it will be run.
struct Submit {
  using Reply = std::variant<Job, Limiter::Refused, StoreError>;
  Submission submission;
};
/// Cancels a job; one that runs is told to end. The answer is the result of CancelJob.
struct Cancel {
  using Reply = std::variant<OperationResult, StoreError>;
  JobId job = 0;
};

/// Decides what runs next, starts a worker for it, and sees to it that each start has an end: a
/// worker that dies is cleaned up after, and its job runs again.
///
/// It never waits for the store: what it asks for is answered by a message.
class Limiters {
 public:
  /// Only the store need run before it.
  struct Args {
    otp::Required<otp::Name<Store>> store = {};
    otp::Required<otp::Name<otp::io::ChildServer>> spawner = {};
    otp::Required<otp::Name<otp::DynamicSupervisor>> workers = {};
  };
  /// Time to take over the stored jobs, again if the store could not give them.
  struct LoadDue {};
  /// Time to look whether something may start.
  struct StartDue {};
  /// Time to clean up after a worker that died.
  struct CleanUpDue {
    JobId job = 0;
  };
  using Info = otp::Protocol<Applied, Concluded, LoadDue, StartDue, CleanUpDue>;

  // Client API.
  static auto submit(const otp::Server<Limiters>& limiters, Submission submission) {
    return otp::try_call(limiters, Submit{std::move(submission)}, kForever);
  }
  static auto cancel(const otp::Server<Limiters>& limiters, JobId job) {
    return otp::try_call(limiters, Cancel{job}, kForever);
  }

  // Callbacks.

  explicit Limiters(Args args);
  otp::Async<otp::Init> init();
  otp::CallResult<Submit::Reply> handle_call(Submit request, otp::From<Submit::Reply> from);
  otp::CallResult<Cancel::Reply> handle_call(Cancel request, otp::From<Cancel::Reply> from);
  otp::Async<void> handle_info(Applied message);
  void handle_info(Concluded message);
  otp::Async<void> handle_info(LoadDue);
  void handle_info(StartDue);
  otp::Async<void> handle_info(CleanUpDue due);
  void handle_info(otp::Down down);
  otp::CastResult handle_info(otp::ExitMessage message);
  /// Says what becomes of the jobs that ran.
  void terminate(otp::ExitReason reason);

 private:
  struct Running {
    Job job = {};  // without its input
    otp::Pid worker = {};
    otp::Reference monitor = {};
    std::string died_of = {};  // not empty: it is no more
  };
  /// The workers are being stopped.
  struct Stop {
    otp::Pid supervisor = {};  // starts no more
    int asked = 0;             // jobs whose commands were asked to end, and have
    int again = 0;             // of them: not done by then
  };
  using Answer = std::function<void(Apply::Outcome)>;

  Moment now() const;
  otp::Pid workers() const;
  void ask_store(std::vector<Operation> operations, Answer answer);
  otp::Async<void> load();
  void start_ready();
  void started(const std::vector<Limiter::Start>& starts, Apply::Outcome outcome);
  otp::Async<void> launch_workers();
  void worker_died(Running& running, std::string reason);
  void cleaned_up(JobId job, const FinishAttempt& finish, Apply::Outcome outcome);
  void end(JobId job);
  void show_numbers();

  const Args args_;
  const Kinds& kinds_;
  Limiter limiter_;
  std::optional<Clock> clock_;  // nothing: the stored jobs are not known yet
  StoreError not_loaded_;       // why
  std::unordered_map<uint64_t, Answer> asked_;
  uint64_t next_tag_ = 1;
  std::vector<Job> to_launch_;
  std::map<JobId, Running> running_;
  std::unordered_map<uint64_t, JobId> by_worker_;
  std::unordered_map<JobId, int> deaths_;  // of a job's workers
  std::optional<otp::TimerRef> timer_;
  Stop stop_;
};

}  // namespace jobs
