#include "apps/jobs/worker.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <variant>

#include "apps/jobs/attempt.h"
#include "apps/jobs/service_metrics.h"
#include "apps/jobs/store.h"
#include "otp/application/application.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr auto kWriteAgainMin = std::chrono::milliseconds(100);
constexpr auto kWriteAgainMax = std::chrono::milliseconds(2000);

void count_end(const Job& job, State state, Moment run_time) {
  JobMetrics::Kind& metrics = service_metrics().kind(job.kind);
  metrics.attempt.observe(run_time);
  if (state == State::queued) {
    metrics.retried.add();
  } else {
    metrics.ended[static_cast<size_t>(state)]->add();
  }
}

}  // namespace

Worker::Worker(Args args) : args_(std::move(args)) {}

const KindSettings& Worker::settings() const {
  return otp::settings<Settings>().kinds->at(args_.job.kind);
}

Moment Worker::now() const { return args_.clock->moment(ClockReading::now().elapsed); }

void Worker::handle_continue(Begin) {
  began_ = now();
  otp::io::ChildCommand command{.argv = *settings().command,
                                .env = command_environment(settings(), std::getenv),
                                .directory = settings().directory};
  Spawner::start_command(args_.job.id, std::move(command));
}

void Worker::handle_info(CommandStreams message) {
  pipes_.emplace(std::move(*message.streams),
                 otp::io::ChildPipes::Options{.input = std::move(args_.job.input),
                                              .output_bytes_max = settings().max_output.count,
                                              .error_bytes_max = settings().max_error.count});
  readiness_.emplace();
  readiness_->watch(pipes_->poll_set());
  readiness_->start();
  (void)otp::send_after(settings().timeout, otp::self(), TimedOut{});
}

void Worker::handle_info(CommandStarted message) {
  const NoteProcess note{args_.job.id, args_.job.attempts, std::move(message.process)};
  Store::apply_later(otp::Pid{}, 0, {note});
}

void Worker::handle_info(DescriptorsReady) {
  std::vector<pollfd> entries = pipes_->poll_set();
  look_at(entries);
  pipes_->on_ready(entries);
  if (!pipes_->poll_set().empty()) readiness_->rearm();
}

void Worker::handle_info(TimedOut) {
  timed_out_ = !ending_;
  end_command();
}

void Worker::handle_cast(Cancel) { end_command(); }

void Worker::end_command() {
  if (std::exchange(ending_, true)) return;
  Spawner::signal_command(SIGTERM);
  (void)otp::send_after(settings().kill_after, otp::self(), KillNow{});
}

void Worker::handle_info(KillNow) { Spawner::signal_command(SIGKILL); }

otp::Async<otp::CastResult> Worker::handle_info(CommandFailed message) {
  return write_down(conclude(settings(), args_.job, message.error, now()));
}

otp::Async<otp::CastResult> Worker::handle_info(CommandEnded message) {
  if (message.exit.how == otp::io::ChildExit::How::lost) {
    // Not the command's fault: the owner has the job run again.
    return lost();
  }
  readiness_->stop();
  pipes_->finish();
  const AttemptEnd end{.exit = message.exit,
                       .output = pipes_->output(),
                       .error = pipes_->error(),
                       .timed_out = timed_out_};
  return write_down(conclude(settings(), args_.job, end, now()));
}

otp::Async<otp::CastResult> Worker::lost() {
  co_return otp::stop(otp::ExitReason::atom("guardian_lost"));
}

otp::Async<otp::CastResult> Worker::write_down(FinishAttempt finish) {
  const Moment run_time = now() - began_;
  for (auto pause = kWriteAgainMin;; pause = std::min(2 * pause, kWriteAgainMax)) {
    auto outcome = (co_await Store::apply({finish})).or_exit();
    if (auto* results = std::get_if<0>(&outcome)) {
      const OperationResult& result = results->front();
      const bool cancelled = !result.applied || result.state_before == State::cancelled;
      const State state = cancelled ? State::cancelled : finish.state;
      if (!cancelled) count_end(args_.job, state, run_time);
      (void)otp::send(args_.owner, Concluded{args_.job.id, state, finish.due});
      co_return otp::stop(otp::ExitReason::normal());
    }
    co_await otp::sleep(pause);
  }
}

void Worker::terminate(otp::ExitReason) {
  if (readiness_) readiness_->stop();
}

}  // namespace jobs
