#include "apps/jobs/spawner.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <utility>
#include <variant>

#include "otp/task/blocking.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;
using otp::io::ChildPrograms;
using otp::io::SystemError;

constexpr auto kFlushAgain = 5ms;  // while the guardian takes no more requests
constexpr auto kStopPatience = 4s;

using Launched = std::variant<ChildPrograms, SystemError>;
/// One owner at a time: the thread that launches it, then the spawner.
using OwnedLaunch = otp::unchecked<std::unique_ptr<Launched>>;

OwnedLaunch launch_guardian() {
  return OwnedLaunch{std::make_unique<Launched>(ChildPrograms::launch({}))};
}

otp::unchecked<std::unique_ptr<ChildPrograms>> stop_guardian(
    std::unique_ptr<ChildPrograms> programs) {
  (void)programs->stop(kStopPatience);
  return {std::move(programs)};
}

}  // namespace

otp::Async<std::optional<SystemError>> Spawner::launch() {
  if (readiness_) readiness_->stop();
  readiness_.reset();
  programs_.reset();
  OwnedLaunch launched = co_await otp::blocking(launch_guardian);
  if (auto* error = std::get_if<SystemError>(launched->get())) co_return *error;
  programs_.emplace(std::get<ChildPrograms>(std::move(**launched)));
  readiness_.emplace();
  readiness_->watch({{.fd = programs_->fd(), .events = POLLIN, .revents = 0}});
  readiness_->start();
  co_return std::nullopt;
}

otp::Async<otp::Init> Spawner::init() {
  otp::trap_exit(true);
  if (auto error = co_await launch()) {
    co_return otp::error(otp::ExitReason::tagged("guardian", otp::Term(error->to_string())));
  }
  co_return otp::ok();
}

void Spawner::handle_cast(StartCommand request) {
  const uint64_t id = next_id_++;
  auto started = programs_->start(id, request.command);
  if (auto* error = std::get_if<SystemError>(&started)) {
    (void)otp::send(request.worker, CommandFailed{*error});
    return;
  }
  commands_[id] = {request.worker, otp::monitor(request.worker), request.job};
  by_worker_[request.worker.id] = id;
  (void)otp::send(request.worker,
                  CommandStreams{{std::get<otp::io::ChildStreams>(std::move(started))}});
  flush_later();
}

void Spawner::handle_cast(SignalCommand request) {
  const auto found = by_worker_.find(request.worker.id);
  if (found == by_worker_.end()) return;
  programs_->signal(found->second, request.number);
  flush_later();
}

otp::CallResult<void> Spawner::handle_call(EndCommandsOf request, otp::From<void> from) {
  for (auto& [id, command] : commands_) {
    if (command.job != request.job) continue;
    command.told_at_end.push_back(from);
    programs_->signal(id, SIGKILL);
    flush_later();
    return otp::noreply();
  }
  return otp::reply();
}

/// The worker of a command is gone: nobody wants its result.
void Spawner::handle_info(otp::Down down) {
  const auto found = by_worker_.find(down.pid.id);
  if (found == by_worker_.end()) return;
  programs_->signal(found->second, SIGKILL);
  flush_later();
}

void Spawner::flush_later() {
  if (!programs_->wants_write() || flush_planned_) return;
  flush_planned_ = true;
  (void)otp::send_after(kFlushAgain, otp::self(), Flush{});
}

otp::Async<otp::CastResult> Spawner::handle_info(Flush) {
  flush_planned_ = false;
  return drive();
}

otp::Async<otp::CastResult> Spawner::handle_info(DescriptorsReady) { return drive(); }

otp::Async<otp::CastResult> Spawner::drive() {
  for (otp::io::ChildEvent& event : programs_->on_ready()) handle(event);
  flush_later();
  if (!programs_->lost()) {
    readiness_->rearm();
    co_return otp::noreply();
  }
  if (auto error = co_await launch()) {
    co_return otp::stop(otp::ExitReason::tagged("guardian", otp::Term(error->to_string())));
  }
  co_return otp::noreply();
}

void Spawner::handle(otp::io::ChildEvent& event) {
  if (auto* started = std::get_if<otp::io::ChildStarted>(&event)) {
    (void)otp::send(commands_.at(started->id).worker, CommandStarted{started->process.to_text()});
  } else if (auto* failed = std::get_if<otp::io::ChildFailed>(&event)) {
    (void)otp::send(commands_.at(failed->id).worker, CommandFailed{failed->error});
    forget(failed->id);
  } else if (auto* ended = std::get_if<otp::io::ChildEnded>(&event)) {
    (void)otp::send(commands_.at(ended->id).worker, CommandEnded{ended->exit});
    forget(ended->id);
  }
}

void Spawner::forget(uint64_t id) {
  const auto found = commands_.find(id);
  otp::demonitor(found->second.monitor, true);
  by_worker_.erase(found->second.worker.id);
  for (const otp::From<void>& from : found->second.told_at_end) otp::reply(from);
  commands_.erase(found);
}

otp::CastResult Spawner::handle_info(otp::ExitMessage message) {
  if (!message.reason.is_abnormal()) return otp::noreply();
  return otp::stop(message.reason);  // the process that waits for the guardian
}

otp::Async<void> Spawner::terminate(otp::ExitReason) {
  if (readiness_) readiness_->stop();
  if (!programs_) co_return;
  auto programs = std::make_unique<ChildPrograms>(std::move(*programs_));
  programs_.reset();
  (void)co_await otp::blocking(stop_guardian, std::move(programs));
}

}  // namespace jobs
