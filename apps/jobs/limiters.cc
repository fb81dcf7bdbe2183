#include "apps/jobs/limiters.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "apps/jobs/read_clock.h"
#include "apps/jobs/service_metrics.h"
#include "otp/application/application.h"
#include "otp/application/log.h"
#include "otp/supervision/dynamic_supervisor.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr Moment kWorkersAgain = 10ms;  // while their supervisor is being started
constexpr Moment kAgain = 1s;           // after the store or the workers could not do it
constexpr std::string_view kDomain = "jobs.limiters";

std::string jobs_text(int64_t count) {
  return std::to_string(count) + (count == 1 ? " job" : " jobs");
}

void report(const Recovered& recovered) {
  if (recovered.requeued == 0 && recovered.failed == 0) return;
  otp::log(otp::LogLevel::notice, kDomain,
           "interrupted when the service ended: " + jobs_text(recovered.requeued) +
               " to run again, " + jobs_text(recovered.failed) + " failed");
}

}  // namespace

Limiters::Limiters(Args args)
    : args_(std::move(args)),
      kinds_(*otp::settings<Settings>().kinds),
      limiter_(kinds_),
      not_loaded_{.kind = StoreError::Kind::busy, .text = "the service is starting"} {}

otp::Async<otp::Init> Limiters::init() {
  co_await load();
  otp::trap_exit(true);  // so that terminate() is called
  co_return otp::ok();
}

Moment Limiters::now() const { return clock_->moment(read_clock().elapsed); }

/// Their supervisor; nobody while it is being started.
otp::Pid Limiters::workers() const {
  const otp::Server<otp::DynamicSupervisor> supervisor = args_.workers;
  return supervisor.pid();
}

otp::Async<void> Limiters::load() {
  auto answer = (co_await Store::recover(args_.store)).or_exit();
  if (auto* error = std::get_if<StoreError>(&answer)) {
    not_loaded_ = *error;
    (void)otp::send_after(kAgain, otp::self(), LoadDue{});
    co_return;
  }
  const auto& found = std::get<Recover::Found>(answer);
  clock_ = *found.clock;
  report(found.recovered);
  for (const RecordedStart& start : found.starts) limiter_.restore_start(start.kind, start.at);
  for (const QueuedJob& job : found.queued) limiter_.put_back(job.kind, job.id, job.due);
  start_ready();
}

otp::Async<void> Limiters::handle_info(LoadDue) { return load(); }

void Limiters::ask_store(std::vector<Operation> operations, Answer answer) {
  const uint64_t tag = next_tag_++;
  asked_.emplace(tag, std::move(answer));
  Store::apply_later(args_.store, otp::self(), tag, std::move(operations));
}

otp::Async<void> Limiters::handle_info(Applied message) {
  auto asked = asked_.extract(message.tag);
  if (!asked.empty()) asked.mapped()(std::move(message.outcome));
  co_await launch_workers();
}

// ---- Jobs come and are cancelled.

otp::CallResult<Submit::Reply> Limiters::handle_call(Submit request,
                                                     otp::From<Submit::Reply> from) {
  if (!clock_) return Submit::Reply(not_loaded_);
  Submission& job = request.submission;
  if (auto refused = limiter_.admit(job.kind, now())) {
    if (refused->why == Limiter::Refusal::queue_full) {
      service_metrics().kind(job.kind).rejected.add();
    }
    return Submit::Reply(*refused);
  }
  InsertJob insert{.kind = job.kind, .input = std::move(job.input)};
  ask_store({std::move(insert)}, [this, from, kind = job.kind](Apply::Outcome outcome) {
    if (auto* error = std::get_if<StoreError>(&outcome)) {
      limiter_.withdraw(kind);
      otp::reply(from, std::move(*error));
      return;
    }
    Job stored = std::move(*std::get<0>(outcome).front().job);
    limiter_.enqueue(kind, stored.id, stored.due_at);
    service_metrics().kind(kind).submitted.add();
    otp::reply(from, std::move(stored));
    start_ready();
  });
  return otp::noreply();
}

otp::CallResult<Cancel::Reply> Limiters::handle_call(Cancel request,
                                                     otp::From<Cancel::Reply> from) {
  if (!clock_) return Cancel::Reply(not_loaded_);
  ask_store({CancelJob{.id = request.job}}, [this, from](Apply::Outcome outcome) {
    if (auto* error = std::get_if<StoreError>(&outcome)) {
      otp::reply(from, std::move(*error));
      return;
    }
    OperationResult result = std::move(std::get<0>(outcome).front());
    if (result.applied) {
      const Job& job = *result.job;
      limiter_.remove(job.kind, job.id);
      const auto running = running_.find(job.id);
      if (running != running_.end()) {
        (void)otp::cast(otp::Server<Worker>(running->second.worker), Worker::Cancel{});
      }
      const auto known = kinds_.find(job.kind);
      if (known != kinds_.end()) {
        service_metrics().kind(job.kind).ended[static_cast<size_t>(State::cancelled)]->add();
      }
    }
    otp::reply(from, std::move(result));
    start_ready();
  });
  return otp::noreply();
}

// ---- Jobs start.

void Limiters::handle_info(StartDue) { start_ready(); }

void Limiters::start_ready() {
  if (timer_) (void)otp::cancel_timer(*std::exchange(timer_, std::nullopt));
  const otp::Pid supervisor = workers();
  if (supervisor == otp::Pid{} || supervisor == stop_.supervisor) {
    timer_ = otp::send_after(kWorkersAgain, otp::self(), StartDue{});  // not yet, or no more
    return show_numbers();
  }
  stop_ = {};
  const Moment at = now();
  std::vector<Limiter::Start> starts = limiter_.take_ready(at);
  if (!starts.empty()) {
    std::vector<Operation> operations;
    for (const Limiter::Start& start : starts) {
      operations.emplace_back(StartAttempt{.id = start.id, .at = at});
    }
    ask_store(std::move(operations), [this, starts = std::move(starts)](Apply::Outcome outcome) {
      started(starts, std::move(outcome));
    });
  }
  if (auto next = limiter_.next_ready(at)) {
    const Moment pause = std::max(*next - at, Moment(1));
    timer_ = otp::send_after(pause, otp::self(), StartDue{});
  }
  show_numbers();
}

/// The starts are written down, or were not: a job that was cancelled meanwhile does not run.
void Limiters::started(const std::vector<Limiter::Start>& starts, Apply::Outcome outcome) {
  auto* results = std::get_if<0>(&outcome);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (results == nullptr) {
      limiter_.ended(starts[i].kind);
      limiter_.put_back(starts[i].kind, starts[i].id, now() + kAgain);
    } else if (!(*results)[i].applied) {
      limiter_.ended(starts[i].kind);
    } else {
      to_launch_.push_back(std::move(*(*results)[i].job));
    }
  }
  start_ready();
}

otp::Async<void> Limiters::launch_workers() {
  for (Job& job : std::exchange(to_launch_, {})) {
    const JobId id = job.id;
    service_metrics().kind(job.kind).wait.observe(*job.started_at - job.due_at);
    const KindSettings& kind = kinds_.at(job.kind);
    Running& running = running_[id];
    running.job = job;
    running.job.input.clear();
    otp::ChildSpec spec = otp::child<Worker>(
        "worker",
        {.job = std::move(job),
         .clock = {*clock_},
         .owner = otp::self(),
         .store = args_.store,
         .spawner = args_.spawner},
        {.restart = otp::Restart::temporary, .shutdown = Worker::shutdown_of(kind)});
    otp::DynamicSupervisor::StartChild request{std::move(spec)};
    auto started = co_await otp::try_call(*args_.workers, std::move(request), kForever);
    if (!started.ok() || !started.value().ok()) {
      const otp::ExitReason why = started.ok() ? started.value().error() : started.error();
      worker_died(running, "not started: " + why.to_string());
      continue;
    }
    running.worker = started.value().value().pid;
    running.monitor = otp::monitor(running.worker);
    by_worker_[running.worker.id] = id;
  }
}

// ---- Jobs end.

void Limiters::handle_info(Concluded message) {
  const auto found = running_.find(message.job);
  if (found == running_.end()) return;
  const std::string kind = found->second.job.kind;
  deaths_.erase(message.job);
  if (message.stopping) {
    if (const otp::Pid supervisor = workers(); supervisor != otp::Pid{}) {
      stop_.supervisor = supervisor;
    }
    ++stop_.asked;
    if (message.state == State::queued) ++stop_.again;
  }
  end(message.job);
  if (message.state == State::queued) limiter_.put_back(kind, message.job, message.due);
  start_ready();
}

void Limiters::end(JobId job) {
  const auto found = running_.find(job);
  const Running& running = found->second;
  if (by_worker_.erase(running.worker.id) > 0) otp::demonitor(running.monitor, true);
  limiter_.ended(running.job.kind);
  running_.erase(found);
}

void Limiters::handle_info(otp::Down down) {
  const auto found = by_worker_.find(down.pid.id);
  if (found == by_worker_.end()) return;
  Running& running = running_.at(found->second);
  by_worker_.erase(found);
  worker_died(running, down.reason.to_string());
}

void Limiters::worker_died(Running& running, std::string reason) {
  running.died_of = std::move(reason);
  (void)otp::send(otp::self(), CleanUpDue{running.job.id});
}

/// Kills what the dead worker's command may have left before the job can run again.
otp::Async<void> Limiters::handle_info(CleanUpDue due) {
  const auto found = running_.find(due.job);
  if (found == running_.end()) co_return;
  const otp::io::ChildServer::EndAllOf all{found->second.worker};
  auto gone = co_await otp::try_call(*args_.spawner, all, {.timeout = kAgain});
  if (!gone.ok() && gone.error() == otp::ExitReason::timeout()) {
    (void)otp::send_after(kAgain, otp::self(), due);
    co_return;
  }  // without a spawner there are no commands
  const Job& job = found->second.job;
  const bool again = runs_again(kinds_.at(job.kind), ++deaths_[job.id]);
  FinishAttempt finish{.id = job.id,
                       .attempt = job.attempts,
                       .state = again ? State::queued : State::failed,
                       .error = "interrupted: its worker ended: " + found->second.died_of,
                       .interrupted = true,
                       .at = now(),
                       .due = now() + kAgain};
  ask_store({finish}, [this, finish](Apply::Outcome outcome) {
    cleaned_up(finish.id, finish, std::move(outcome));
  });
}

void Limiters::cleaned_up(JobId job, const FinishAttempt& finish, Apply::Outcome outcome) {
  const auto found = running_.find(job);
  if (found == running_.end()) return;
  const auto* results = std::get_if<0>(&outcome);
  if (results == nullptr) {
    (void)otp::send_after(kAgain, otp::self(), CleanUpDue{job});
    return;
  }
  const OperationResult& result = results->front();
  const bool requeued =
      result.applied && result.state_before == State::running && finish.state == State::queued;
  const std::string kind = found->second.job.kind;
  end(job);
  if (requeued) {
    limiter_.put_back(kind, job, finish.due);
  } else {
    deaths_.erase(job);
  }
  start_ready();
}

otp::CastResult Limiters::handle_info(otp::ExitMessage message) {
  if (!message.reason.is_abnormal()) return otp::noreply();
  return otp::stop(message.reason);
}

void Limiters::terminate(otp::ExitReason reason) {
  if (reason.is_abnormal()) return;
  for (const auto& [id, running] : running_) {  // killed: the store finds them at the next start
    ++stop_.asked;
    if (kinds_.at(running.job.kind).on_interrupt == OnInterrupt::requeue) ++stop_.again;
  }
  if (stop_.asked == 0) return;
  otp::log(otp::LogLevel::notice, kDomain,
           "stopping: asked " + jobs_text(stop_.asked) + " to end; " + jobs_text(stop_.again) +
               " to run again at the next start");
}

void Limiters::show_numbers() {
  for (const auto& [name, settings] : kinds_) {
    JobMetrics::Kind& kind = service_metrics().kind(name);
    kind.waiting.set(static_cast<int64_t>(limiter_.waiting(name)));
    kind.running.set(static_cast<int64_t>(limiter_.running(name)));
  }
}

}  // namespace jobs
