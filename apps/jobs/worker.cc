#include "apps/jobs/worker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <variant>

#include "apps/jobs/attempt.h"
#include "apps/jobs/read_clock.h"
#include "apps/jobs/service_metrics.h"
#include "apps/jobs/store.h"
#include "otp/application/application.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr auto kWriteAgainMin = std::chrono::milliseconds(100);
constexpr auto kWriteAgainMax = std::chrono::milliseconds(2000);
constexpr auto kWriteDownPatience = std::chrono::milliseconds(3000);

/// Not the command's fault: the owner has the job run again.
otp::CastResult lost() { return otp::stop(otp::ExitReason::atom("guardian_lost")); }

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

Moment Worker::now() const { return args_.clock->moment(read_clock().elapsed); }

otp::Init Worker::init() {
  otp::trap_exit(true);  // so that terminate() is called
  return otp::ok().then_continue(Begin{});
}

otp::Async<otp::CastResult> Worker::handle_continue(Begin) {
  began_ = now();
  otp::io::ChildCommand command{.argv = *settings().command,
                                .env = command_environment(settings(), std::getenv),
                                .directory = settings().directory};
  otp::io::ChildOptions options{.input = std::move(args_.job.input),
                                .output_bytes_max = settings().max_output.count,
                                .error_bytes_max = settings().max_error.count};
  auto started =
      co_await otp::io::ChildProgram::start(args_.spawner, std::move(command), std::move(options));
  if (auto* error = std::get_if<otp::io::SystemError>(&started)) {
    if (error->code == EPIPE) co_return lost();
    co_return co_await write_down(conclude(settings(), args_.job, *error, now()));
  }
  program_.emplace(std::get<otp::io::ChildProgram>(std::move(started)));
  const NoteProcess note{args_.job.id, args_.job.attempts, program_->identity().to_text()};
  Store::apply_later(args_.store, otp::Pid{}, 0, {note});
  (void)otp::send_after(settings().timeout, otp::self(), TimedOut{});
  co_return otp::noreply();
}

otp::Async<otp::CastResult> Worker::handle_info(otp::io::ChildNews news) {
  return ended(program_->take(news));
}

otp::Async<otp::CastResult> Worker::handle_info(otp::Down down) {
  return ended(program_->take(down));
}

void Worker::handle_info(TimedOut) {
  timed_out_ = !ending_;
  end_command();
}

void Worker::handle_cast(Cancel) { end_command(); }

void Worker::end_command() {
  if (std::exchange(ending_, true)) return;
  program_->signal(SIGTERM);
  (void)otp::send_after(settings().kill_after, otp::self(), KillNow{});
}

void Worker::handle_info(KillNow) { program_->signal(SIGKILL); }

otp::Async<otp::CastResult> Worker::ended(std::optional<otp::io::ChildOutcome> outcome) {
  if (!outcome) co_return otp::noreply();
  if (outcome->exit.how == otp::io::ChildExit::How::lost) co_return lost();
  const AttemptEnd end{.exit = outcome->exit,
                       .output = std::move(outcome->output),
                       .error = std::move(outcome->error),
                       .timed_out = timed_out_};
  const bool interrupted = stopping_ && !timed_out_ && !end.exit.success();
  FinishAttempt finish = interrupted ? interrupt(settings(), args_.job, end, now())
                                     : conclude(settings(), args_.job, end, now());
  co_return co_await write_down(std::move(finish));
}

otp::Async<otp::CastResult> Worker::write_down(FinishAttempt finish) {
  const Moment run_time = now() - began_;
  for (auto pause = kWriteAgainMin;; pause = std::min(2 * pause, kWriteAgainMax)) {
    auto outcome = (co_await Store::apply(args_.store, {finish})).or_exit();
    if (auto* results = std::get_if<0>(&outcome)) {
      const OperationResult& result = results->front();
      const bool cancelled = !result.applied || result.state_before == State::cancelled;
      const State state = cancelled ? State::cancelled : finish.state;
      if (!cancelled) count_end(args_.job, state, run_time);
      (void)otp::send(args_.owner, Concluded{args_.job.id, state, finish.due, stopping_});
      co_return otp::stop(otp::ExitReason::normal());
    }
    co_await otp::sleep(pause);
  }
}

/// A command that runs when its supervisor stops this worker. (After any other end its program is
/// killed as it is dropped, and the owner has the job run again.)
otp::Async<void> Worker::terminate(otp::ExitReason reason) {
  if (!program_ || reason != otp::ExitReason::shutdown()) co_return;
  stopping_ = true;
  end_command();
  auto outcome = co_await program_->wait(settings().kill_after);
  if (!outcome) {
    program_->signal(SIGKILL);
    outcome = co_await program_->wait();
  }
  (void)co_await ended(std::move(outcome));
}

otp::Shutdown Worker::shutdown_of(const KindSettings& settings) {
  return otp::Shutdown(settings.kill_after + kWriteDownPatience);
}

}  // namespace jobs
