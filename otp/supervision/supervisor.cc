#include "otp/supervision/supervisor.h"

#include <algorithm>

#include "otp/base/enum_names.h"
#include "otp/supervision/internal/reports.h"
#include "otp/supervision/internal/stop_process.h"

namespace otp {

using namespace internal;
using Context = SupervisorReport::Context;

namespace {
constexpr CallOptions kForever{.timeout = infinity};

int64_t now() { return self_process().system().now(); }

ExitReason failed_to_start(const ChildSpec& spec, const ExitReason& reason) {
  return ExitReason::shutdown(
      Term::tuple({Term::literal("failed_to_start_child"), Term::atom(spec.id), reason.term()}));
}

ChildInfo info_of(const Child& child) {
  ChildInfo info{.id = child.spec.id};
  if (child.state == ChildState::running) info.pid = child.pid;
  info.state = child.state;
  info.type = child.spec.type;
  info.server = child.spec.server;
  info.restart = child.spec.restart;
  info.shutdown = child.spec.shutdown_or_default();
  info.significant = child.spec.significant;
  info.restarts = child.restarts;
  info.server_type = child.spec.server_type;
  return info;
}

}  // namespace

// ---- Starting

Async<Result<SupervisorRef>> Supervisor::start_link(SupervisorSpec spec, StartOptions options) {
  return otp::start_link<Supervisor>(
      Args{.spec = std::make_shared<const SupervisorSpec>(std::move(spec))}, std::move(options));
}

Async<Result<SupervisorRef>> Supervisor::start_link(SupervisorInit init, StartOptions options) {
  return otp::start_link<Supervisor>(Args{.init = std::move(init)}, std::move(options));
}

// ---- Client API

PendingCall<Supervisor, Supervisor::StartChild> Supervisor::start_child(SupervisorRef supervisor,
                                                                        ChildSpec spec) {
  return otp::call(std::move(supervisor), StartChild{std::move(spec)}, kForever);
}

PendingCall<Supervisor, Supervisor::TerminateChild> Supervisor::terminate_child(
    SupervisorRef supervisor, std::string id) {
  return otp::call(std::move(supervisor), TerminateChild{std::move(id)}, kForever);
}

PendingCall<Supervisor, Supervisor::RestartChild> Supervisor::restart_child(
    SupervisorRef supervisor, std::string id) {
  return otp::call(std::move(supervisor), RestartChild{std::move(id)}, kForever);
}

PendingCall<Supervisor, Supervisor::DeleteChild> Supervisor::delete_child(SupervisorRef supervisor,
                                                                          std::string id) {
  return otp::call(std::move(supervisor), DeleteChild{std::move(id)}, kForever);
}

PendingCall<Supervisor, Supervisor::WhichChildren> Supervisor::which_children(
    SupervisorRef supervisor) {
  return otp::call(std::move(supervisor), WhichChildren{}, kForever);
}

PendingCall<Supervisor, Supervisor::CountChildren> Supervisor::count_children(
    SupervisorRef supervisor) {
  return otp::call(std::move(supervisor), CountChildren{}, kForever);
}

PendingCall<Supervisor, Supervisor::GetChildSpec> Supervisor::get_child_spec(
    SupervisorRef supervisor, std::string id) {
  return otp::call(std::move(supervisor), GetChildSpec{std::move(id)}, kForever);
}

ChildSpec supervisor(std::string id, SupervisorSpec spec, ChildOptions options) {
  return child<Supervisor>(
      std::move(id),
      Supervisor::Args{.spec = std::make_shared<const SupervisorSpec>(std::move(spec))},
      std::move(options));
}

Supervisor::Supervisor(Args args) : args_(std::move(args)) {}

Async<Init> Supervisor::init() {
  trap_exit(true);
  auto spec = std::exchange(args_.spec, nullptr);
  if (args_.init) {
    Result<SupervisorSpec> made = std::exchange(args_.init, nullptr)();
    if (made.ignored()) co_return otp::ignore();
    if (!made.ok()) co_return otp::stop(made.error());
    spec = std::make_shared<const SupervisorSpec>(std::move(made).value());
  }
  if (spec == nullptr) spec = std::make_shared<const SupervisorSpec>();
  if (auto why = check_supervisor_flags(*spec)) {
    co_return otp::stop(ExitReason::tagged("supervisor_data", why->term()));
  }
  if (auto why = check_child_specs(spec->children, spec->auto_shutdown)) {
    co_return otp::stop(ExitReason::tagged("start_spec", why->term()));
  }
  strategy_ = spec->strategy;
  auto_shutdown_ = spec->auto_shutdown;
  intensity_ = spec->intensity;
  period_ = spec->period;
  window_ = RestartWindow(intensity_, period_);
  for (const ChildSpec& each : spec->children) {
    Child& child = children_.append(each);
    auto started = co_await start_one(child);
    if (!started.ok()) {
      ExitReason reason = failed_to_start(each, started.error());
      report_child(Context::start_error, started.error(), each, Pid());
      if (!children_.empty()) co_await stop_range({children_.first(), children_.last()});
      co_return otp::stop(std::move(reason));
    }
    if (!started.value().pid) forget_or_stop(child);
  }
  co_return otp::ok();
}

// The child's state changes only when its process is there, or its start was ignored.
Async<Result<StartedChild>> Supervisor::start_one(Child& child) {
  auto started = co_await start_process(child.spec);
  if (started.ignored()) {
    children_.set_stopped(child);
    co_return StartedChild{};
  }
  if (!started.ok()) co_return started.error();
  children_.set_running(child, started.value().pid);
  child.backoff.started(now());
  report_progress(child.spec, child.pid);
  co_return StartedChild{started.value().pid, std::move(started.value().info)};
}

// ---- The end of a child

Async<CastResult> Supervisor::handle_info(ExitMessage message) {
  Child* child = children_.find(message.from);
  // Unknown: somebody linked to us, or a child that we have stopped. Alive: it only sent a signal.
  if (child == nullptr || is_alive(message.from)) co_return otp::noreply();
  co_return co_await child_ended(*child, std::move(message.reason));
}

Async<CastResult> Supervisor::child_ended(Child& child, ExitReason reason) {
  const bool restarts = wants_restart(child.spec.restart, reason);
  if (restarts || reason.is_abnormal()) {
    report_child(Context::child_terminated, reason, child.spec, child.pid);
  }
  if (restarts) co_return co_await restart(child, std::move(reason));
  const bool stop = significant_end(child);
  forget_or_stop(child);
  if (stop) co_return otp::stop(ExitReason::shutdown());
  co_return otp::noreply();
}

bool Supervisor::significant_end(const Child& child) const {
  if (auto_shutdown_ == AutoShutdown::never || !child.spec.significant) return false;
  if (auto_shutdown_ == AutoShutdown::any_significant) return true;
  for (const Child* each = children_.first(); each != nullptr; each = each->next) {
    if (each != &child && each->spec.significant && each->state != ChildState::stopped) {
      return false;
    }
  }
  return true;
}

// A temporary child leaves no specification behind.
void Supervisor::forget_or_stop(Child& child) {
  if (child.spec.restart == Restart::temporary) {
    children_.remove(child);
  } else {
    children_.set_stopped(child);
  }
}

// ---- Restarting

Async<CastResult> Supervisor::restart(Child& child, ExitReason reason) {
  if (!window_.add(now())) {
    report_child(Context::shutdown, reason, child.spec, child.pid);
    forget_or_stop(child);
    co_return otp::stop(ExitReason::shutdown());
  }
  ++child.restarts;
  children_.set_restarting(child);
  if (Duration pause = child.backoff.next(child.spec.backoff, now()); pause > Duration(0)) {
    if (strategy_ != Strategy::one_for_one) {
      co_await stop_range(range_of(child));
      children_.set_restarting(child);
    }
    plan_restart(child, pause, false);
  } else {
    co_await restart_now(child);
  }
  co_return otp::noreply();
}

Async<void> Supervisor::restart_now(Child& child) {
  if (strategy_ == Strategy::one_for_one) {
    auto started = co_await start_one(child);
    if (!started.ok()) start_failed(child, started.error());
    co_return;
  }
  co_await stop_range(range_of(child));
  co_await start_range(range_of(child));
}

Supervisor::Range Supervisor::range_of(Child& child) const {
  return {strategy_ == Strategy::one_for_all ? children_.first() : &child, children_.last()};
}

// Those that come after one that fails stay down until its next attempt, which includes them.
Async<void> Supervisor::start_range(Range range) {
  for (Child* child = range.first; child != nullptr; child = child->next) {
    auto started = co_await start_one(*child);
    if (!started.ok()) {
      start_failed(*child, started.error());
      co_return;
    }
  }
}

// Tried again by a message, so that requests that wait are served in between (SUP-015).
void Supervisor::start_failed(Child& child, const ExitReason& reason) {
  report_child(Context::start_error, reason, child.spec, child.pid);
  children_.set_restarting(child);
  child.failure = reason;
  plan_restart(child, Duration(0), true);
}

void Supervisor::plan_restart(Child& child, Duration pause, bool count) {
  RestartDue due{child.spec.id, child.attempt, count};
  if (pause > Duration(0)) {
    (void)send_after(pause, self(), std::move(due));
  } else {
    (void)otp::send(SupervisorRef(self()), std::move(due));
  }
}

Async<CastResult> Supervisor::handle_info(RestartDue due) {
  Child* child = children_.find(due.id);
  if (child == nullptr || child->state != ChildState::restarting || child->attempt != due.attempt) {
    co_return otp::noreply();  // somebody stopped, removed or restarted it meanwhile
  }
  if (due.count) co_return co_await restart(*child, std::move(child->failure));
  co_await restart_now(*child);
  co_return otp::noreply();
}

// ---- Stopping

Async<void> Supervisor::stop_one(Child& child) {
  if (child.state == ChildState::running) {
    const Pid pid = child.pid;
    const Shutdown shutdown = child.spec.shutdown_or_default();
    ExitReason reason = co_await stop_process(child.spec.id, pid, shutdown);
    if (is_shutdown_error(reason, child.spec.restart, shutdown)) {
      report_child(Context::shutdown_error, reason, child.spec, pid);
    }
  }
  children_.set_stopped(child);
}

// In reverse start order. Temporary children are gone for good: their like are never restarted.
Async<void> Supervisor::stop_range(Range range) {
  for (Child* child = range.last; child != nullptr;) {
    Child* const before = child == range.first ? nullptr : child->previous;
    co_await stop_one(*child);
    forget_or_stop(*child);
    child = before;
  }
}

// Children whose EXIT waits already: taken one after the other here, as each later stop would walk
// over all of them in search of its DOWN.
Async<void> Supervisor::take_ended() {
  while (auto ended = co_await receive<ExitMessage>(after(Duration(0)))) {
    Child* child = children_.find(ended->from);
    if (child == nullptr || is_alive(ended->from)) continue;
    const ChildSpec& spec = child->spec;
    if (is_shutdown_error(ended->reason, spec.restart, spec.shutdown_or_default())) {
      report_child(Context::shutdown_error, ended->reason, spec, child->pid);
    }
    report_had_ended(spec.id, child->pid, ended->reason);
    children_.set_stopped(*child);
  }
}

Async<void> Supervisor::terminate(ExitReason) {
  for (Child* child = children_.last(); child != nullptr; child = child->previous) {
    co_await take_ended();  // others end meanwhile
    co_await stop_one(*child);
  }
}

// ---- Requests

Async<Result<StartedChild>> Supervisor::handle_call(StartChild request) {
  if (auto why = check_child_spec(request.spec, auto_shutdown_)) co_return ExitReason(*why);
  if (Child* present = children_.find(request.spec.id)) {
    switch (present->state) {
      case ChildState::stopped: co_return ExitReason::atom("already_present");
      case ChildState::restarting:
        co_return ExitReason::tagged("already_started", Term::literal("restarting"));
      case ChildState::running: co_return ExitReason::tagged("already_started", Term(present->pid));
    }
  }
  Child& child = children_.append(std::move(request.spec));
  auto started = co_await start_one(child);
  if (!started.ok()) {
    children_.remove(child);
  } else if (!started.value().pid) {
    forget_or_stop(child);
  }
  co_return started;
}

Async<Result<void>> Supervisor::handle_call(TerminateChild request) {
  Child* child = children_.find(request.id);
  if (child == nullptr) co_return ExitReason::atom("not_found");
  co_await stop_one(*child);
  forget_or_stop(*child);
  co_return Result<void>();
}

Async<Result<StartedChild>> Supervisor::handle_call(RestartChild request) {
  Child* child = children_.find(request.id);
  if (child == nullptr) co_return ExitReason::atom("not_found");
  if (child->state == ChildState::running) co_return ExitReason::atom("running");
  if (child->state == ChildState::restarting) co_return ExitReason::atom("restarting");
  co_return co_await start_one(*child);
}

Result<void> Supervisor::handle_call(DeleteChild request) {
  Child* child = children_.find(request.id);
  if (child == nullptr) return ExitReason::atom("not_found");
  if (child->state == ChildState::running) return ExitReason::atom("running");
  if (child->state == ChildState::restarting) return ExitReason::atom("restarting");
  children_.remove(*child);
  return {};
}

std::vector<ChildInfo> Supervisor::handle_call(WhichChildren) {
  std::vector<ChildInfo> infos;
  infos.reserve(children_.size());
  for (Child* child = children_.last(); child != nullptr; child = child->previous) {
    infos.push_back(info_of(*child));
  }
  return infos;
}

ChildCount Supervisor::handle_call(CountChildren) {
  ChildCount count;
  for (Child* child = children_.first(); child != nullptr; child = child->next) {
    ++count.specs;
    if (child->state == ChildState::running && is_alive(child->pid)) ++count.active;
    ++(child->spec.type == ChildType::supervisor ? count.supervisors : count.workers);
  }
  return count;
}

Result<ChildSpec> Supervisor::handle_call(GetChildSpec request) {
  Child* child = children_.find(request.id);
  if (child == nullptr) return ExitReason::atom("not_found");
  return child->spec;
}

void Supervisor::format_status(BoundedWriter& out) const {
  out.write(enum_name(strategy_)).write(", at most ").number(intensity_).write(" restarts in ");
  out.write(duration_text(period_)).write(", children [");
  for (const Child* child = children_.first(); child != nullptr; child = child->next) {
    if (out.full()) return;
    if (child != children_.first()) out.write(", ");
    out.write(child->spec.id).write(' ').write(enum_name(child->state));
    if (child->state == ChildState::running) out.write(' ').write(child->pid.to_string());
  }
  out.write(']');
}

SupervisorInfo Supervisor::handle_call(Describe) {
  SupervisorInfo info{
      .strategy = std::string(enum_name(strategy_)), .intensity = intensity_, .period = period_};
  for (Child* child = children_.first(); child != nullptr; child = child->next) {
    info.children.push_back(info_of(*child));
  }
  return info;
}

}  // namespace otp
