#include "otp/supervision/dynamic_supervisor.h"

#include <algorithm>

#include "otp/base/pool.h"
#include "otp/supervision/internal/backoff.h"
#include "otp/supervision/internal/reports.h"
#include "otp/supervision/internal/stop_process.h"

namespace otp {

using namespace internal;
using Context = SupervisorReport::Context;

namespace {
constexpr CallOptions kForever{.timeout = infinity};

int64_t now() { return self_process().system().now(); }
}  // namespace

/// What is kept of a child: little, as there may be millions. Only one that can be restarted needs
/// its specification.
struct DynamicSupervisor::Child {
  struct Again {
    explicit Again(ChildSpec child_spec) : spec(std::move(child_spec)) {}
    ChildSpec spec;
    BackoffState backoff{};
    ExitReason failure{};  // of the last start, while it restarts
    uint64_t restarts = 0;
  };

  uint64_t id;  // of its process; while it restarts, of the one that ended
  std::unique_ptr<Again> again;
  const ServerType* server_type;
  Timeout shutdown;  // meaningless when `brutal_kill`
  bool brutal_kill;
  Restart restart;
  ChildType type;
  ChildState state = ChildState::running;
  ExitReason* ended = nullptr;  // while all are stopped: where to note its reason

  Child(uint64_t process, ChildSpec spec)
      : id(process),
        server_type(spec.server_type),
        shutdown(spec.shutdown_or_default().timeout()),
        brutal_kill(spec.shutdown_or_default().is_brutal_kill()),
        restart(spec.restart),
        type(spec.type) {
    if (restart != Restart::temporary) again = std::make_unique<Again>(std::move(spec));
  }
  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* child, size_t bytes) noexcept { pool_free(child, bytes); }

  Pid pid() const { return Pid{0, id}; }
  Shutdown how_to_stop() const { return brutal_kill ? Shutdown::brutal_kill : Shutdown(shutdown); }
  /// For reports and lists.
  ChildSpec described() const {
    if (again) return again->spec;
    ChildSpec spec;
    spec.restart = restart;
    spec.shutdown = how_to_stop();
    spec.type = type;
    spec.server_type = server_type;
    if (server_type != nullptr) spec.server = server_type->name;
    return spec;
  }
  ChildInfo info() const {
    ChildInfo row;
    if (state == ChildState::running) row.pid = pid();
    row.state = state;
    row.type = type;
    if (server_type != nullptr) row.server = server_type->name;
    row.restart = restart;
    row.shutdown = how_to_stop();
    row.restarts = again ? again->restarts : 0;
    row.server_type = server_type;
    return row;
  }
};

// ---- Starting

Async<Result<DynamicSupervisorRef>> DynamicSupervisor::start_link(DynamicSupervisorSpec spec,
                                                                  StartOptions options) {
  return otp::start_link<DynamicSupervisor>(spec, std::move(options));
}

// ---- Client API

PendingCall<DynamicSupervisor, DynamicSupervisor::StartChild> DynamicSupervisor::start_child(
    DynamicSupervisorRef supervisor, ChildSpec spec) {
  return otp::call(std::move(supervisor), StartChild{std::move(spec)}, kForever);
}

PendingCall<DynamicSupervisor, DynamicSupervisor::TerminateChild>
DynamicSupervisor::terminate_child(DynamicSupervisorRef supervisor, Pid child) {
  return otp::call(std::move(supervisor), TerminateChild{child}, kForever);
}

PendingCall<DynamicSupervisor, DynamicSupervisor::WhichChildren> DynamicSupervisor::which_children(
    DynamicSupervisorRef supervisor) {
  return otp::call(std::move(supervisor), WhichChildren{}, kForever);
}

PendingCall<DynamicSupervisor, DynamicSupervisor::CountChildren> DynamicSupervisor::count_children(
    DynamicSupervisorRef supervisor) {
  return otp::call(std::move(supervisor), CountChildren{}, kForever);
}

ChildSpec dynamic_supervisor(std::string id, DynamicSupervisorSpec spec, ChildOptions options) {
  return child<DynamicSupervisor>(std::move(id), spec, std::move(options));
}

DynamicSupervisor::DynamicSupervisor(Args args)
    : spec_(args), window_(args.intensity, args.period) {}

DynamicSupervisor::~DynamicSupervisor() {
  children_.for_each([](uint64_t, Child*& child) { delete child; });
}

Init DynamicSupervisor::init() {
  trap_exit(true);
  if (spec_.period <= Duration(0)) {
    return otp::stop(ExitReason::tagged(
        "supervisor_data",
        Term::tuple({Term::literal("invalid_period"), Term(spec_.period.count())})));
  }
  return otp::ok();
}

Async<Result<StartedChild>> DynamicSupervisor::handle_call(StartChild request) {
  if (auto why = check_child_spec(request.spec, AutoShutdown::never, false)) {
    co_return ExitReason(*why);
  }
  if (spec_.children_max != 0 && children_.size() >= spec_.children_max) {
    co_return ExitReason::atom("max_children");
  }
  auto started = co_await start_process(request.spec);
  if (started.ignored()) co_return Ignored();
  if (!started.ok()) co_return started.error();
  const Pid pid = started.value().pid;
  if (!pid) co_return Ignored();
  report_progress(request.spec, pid);
  if (request.spec.type == ChildType::supervisor) ++supervisors_;
  auto* child = new Child(pid.id, std::move(request.spec));
  *children_.insert(pid.id).first = child;
  if (child->again) child->again->backoff.started(now());
  co_return StartedChild{pid, std::move(started.value().info)};
}

DynamicSupervisor::Child* DynamicSupervisor::find(Pid pid) {
  Child** at = children_.find(pid.id);
  return at == nullptr ? nullptr : *at;
}

void DynamicSupervisor::remember(Child& child, Pid pid) {
  children_.erase(child.id);
  child.id = pid.id;
  child.state = ChildState::running;
  --restarting_;
  *children_.insert(pid.id).first = &child;
}

void DynamicSupervisor::forget(Child& child) {
  if (child.type == ChildType::supervisor) --supervisors_;
  if (child.state == ChildState::restarting) --restarting_;
  children_.erase(child.id);
  delete &child;
}

// ---- The end of a child, and its next life

Async<CastResult> DynamicSupervisor::handle_info(ExitMessage message) {
  Child* child = find(message.from);
  // Unknown: somebody linked to us, or a child that we have stopped. Alive: it only sent a signal.
  if (child == nullptr || is_alive(message.from)) co_return otp::noreply();
  const bool restarts = wants_restart(child->restart, message.reason);
  if (restarts || message.reason.is_abnormal()) {
    report_child(Context::child_terminated, message.reason, child->described(), child->pid());
  }
  if (restarts) co_return co_await restart(*child, std::move(message.reason));
  forget(*child);
  co_return otp::noreply();
}

Async<CastResult> DynamicSupervisor::restart(Child& child, ExitReason reason) {
  if (!window_.add(now())) {
    report_child(Context::shutdown, reason, child.described(), child.pid());
    forget(child);
    co_return otp::stop(ExitReason::shutdown());
  }
  ++child.again->restarts;
  if (child.state != ChildState::restarting) {
    child.state = ChildState::restarting;
    ++restarting_;
  }
  const Duration pause = child.again->backoff.next(child.again->spec.backoff, now());
  if (pause > Duration(0)) {
    plan_restart(child, pause, false);
  } else {
    co_await restart_now(child);
  }
  co_return otp::noreply();
}

Async<void> DynamicSupervisor::restart_now(Child& child) {
  auto started = co_await start_process(child.again->spec);
  if (started.ok() && started.value().pid) {
    child.again->backoff.started(now());
    remember(child, started.value().pid);
    report_progress(child.again->spec, child.pid());
  } else if (started.ok() || started.ignored()) {
    forget(child);
  } else {
    report_child(Context::start_error, started.error(), child.again->spec, child.pid());
    child.again->failure = started.error();
    plan_restart(child, Duration(0), true);
  }
}

// A failed start is tried again by a message, so that requests that wait are served in between.
void DynamicSupervisor::plan_restart(Child& child, Duration pause, bool count) {
  RestartDue due{child.pid(), count};
  if (pause > Duration(0)) {
    (void)send_after(pause, self(), due);
  } else {
    (void)otp::send(DynamicSupervisorRef(self()), due);
  }
}

Async<CastResult> DynamicSupervisor::handle_info(RestartDue due) {
  Child* child = find(due.former);
  if (child == nullptr || child->state != ChildState::restarting) co_return otp::noreply();
  if (due.count) co_return co_await restart(*child, std::move(child->again->failure));
  co_await restart_now(*child);
  co_return otp::noreply();
}

// ---- Stopping

Async<Result<void>> DynamicSupervisor::handle_call(TerminateChild request) {
  Child* child = find(request.child);
  if (child == nullptr || child->state != ChildState::running) {
    co_return ExitReason::atom("not_found");
  }
  ExitReason reason = co_await stop_process({}, child->pid(), child->how_to_stop());
  if (is_shutdown_error(reason, child->restart, child->how_to_stop())) {
    report_child(Context::shutdown_error, reason, child->described(), child->pid());
  }
  forget(*child);
  co_return Result<void>();
}

/// All children on their way out at once.
struct DynamicSupervisor::Stopping {
  struct One {
    Child* child;
    int64_t deadline;   // then it is killed; kNever when it may take for ever
    int64_t killed;     // when it was
    ExitReason reason;  // from its EXIT, if that came before its DOWN
    bool gone = false;
  };
  std::vector<One> all;
  IdMap<uint32_t> by_monitor;         // index in `all`
  std::vector<uint32_t> by_deadline;  // those with one, the earliest first
  size_t next = 0;                    // in by_deadline
  size_t left = 0;
  int64_t started = now();
  std::vector<uint32_t> killed;  // those not known to be gone, the one killed first in front
  int64_t next_word = TimerWheel::kNever;  // on those that do not end though they were killed

  void tell(Child& child) {
    const auto index = static_cast<uint32_t>(all.size());
    *by_monitor.insert(monitor(child.pid()).id).first = index;
    otp::exit(child.pid(), child.brutal_kill ? ExitReason::kill() : ExitReason::shutdown());
    int64_t deadline = TimerWheel::kNever;
    if (!child.brutal_kill && !child.shutdown.is_infinite() &&
        child.shutdown.nanoseconds() < TimerWheel::kNever - 1 - started) {
      deadline = started + child.shutdown.nanoseconds();
      by_deadline.push_back(index);
    }
    all.push_back({&child, deadline, started, {}});
    if (child.brutal_kill) note_killed(index);
    ++left;
  }
  void note_killed(uint32_t index) {
    killed.push_back(index);
    if (next_word == TimerWheel::kNever) next_word = all[index].killed + kUnkilledFirst.count();
  }
  void sort() {
    for (One& each : all) each.child->ended = &each.reason;  // `all` does not move any more
    std::sort(by_deadline.begin(), by_deadline.end(), [this](uint32_t a, uint32_t b) {
      return std::pair(all[a].deadline, a) < std::pair(all[b].deadline, b);
    });
  }
  Timeout patience() {
    while (next < by_deadline.size() && all[by_deadline[next]].gone) ++next;
    int64_t first = next_word;
    if (next < by_deadline.size()) first = std::min(first, all[by_deadline[next]].deadline);
    if (first == TimerWheel::kNever) return infinity;
    return Duration(std::max<int64_t>(first - now(), 0));
  }
  void kill_late() {
    for (const int64_t at = now();
         next < by_deadline.size() && all[by_deadline[next]].deadline <= at; ++next) {
      One& one = all[by_deadline[next]];
      if (one.gone) continue;
      otp::exit(one.child->pid(), ExitReason::kill());
      one.killed = at;
      note_killed(by_deadline[next]);
    }
  }
  // One whose callback never returns is waited for without an end, but not in silence.
  void tell_of_unkilled() {
    const int64_t at = now();
    if (at < next_word) return;
    std::erase_if(killed, [this](uint32_t index) { return all[index].gone; });
    size_t late = 0;
    while (late < killed.size() && at - all[killed[late]].killed >= kUnkilledFirst.count()) ++late;
    for (size_t i = 0; late <= kStoppedLinesMax && i < late; ++i) {
      const One& one = all[killed[i]];
      report_unkilled({}, one.child->pid(), Duration(at - one.killed));
    }
    if (late > kStoppedLinesMax) report_unkilled(late, Duration(at - all[killed[0]].killed));
    next_word = TimerWheel::kNever;
    if (late > 0) next_word = at + kUnkilledAgain.count();
    if (late == 0 && !killed.empty()) next_word = all[killed[0]].killed + kUnkilledFirst.count();
  }
};

Async<void> DynamicSupervisor::terminate(ExitReason) {
  Stopping stopping;
  stopping.all.reserve(children_.size());
  children_.for_each([&](uint64_t, Child*& child) {
    if (child->state == ChildState::running) stopping.tell(*child);
  });
  stopping.sort();
  const bool in_detail = stopping.all.size() <= kStoppedLinesMax;
  while (stopping.left > 0) {
    auto message = co_await receive<Down, ExitMessage>(after(stopping.patience()));
    if (!message) {
      stopping.kill_late();
      stopping.tell_of_unkilled();
    } else if (auto* ended = std::get_if<ExitMessage>(&*message)) {
      Child* child = find(ended->from);
      if (child != nullptr && child->ended != nullptr && !is_alive(ended->from)) {
        *child->ended = std::move(ended->reason);
      }
    } else {
      auto& down = std::get<Down>(*message);
      if (uint32_t* index = stopping.by_monitor.find(down.reference.id)) {
        const ExitReason& reason = finish_one(stopping.all[*index].child, down);
        const Duration took(now() - stopping.started);
        if (in_detail) report_stopped({}, stopping.all[*index].child->pid(), reason, took);
        stopping.all[*index].gone = true;
        --stopping.left;
      }
    }
  }
  if (!in_detail) report_stopped(stopping.all.size(), Duration(now() - stopping.started));
}

// Its DOWN says `noproc` when it had ended before it was told: then its EXIT has said why.
const ExitReason& DynamicSupervisor::finish_one(Child* child, const Down& down) {
  const bool earlier = down.reason.is("noproc") && !child->ended->is_normal();
  const ExitReason& reason = earlier ? *child->ended : down.reason;
  if (is_shutdown_error(reason, child->restart, child->how_to_stop())) {
    report_child(Context::shutdown_error, reason, child->described(), child->pid());
  }
  return reason;
}

// ---- Lists

std::vector<ChildInfo> DynamicSupervisor::handle_call(WhichChildren) {
  std::vector<ChildInfo> rows;
  rows.reserve(children_.size());
  children_.for_each([&](uint64_t, Child*& child) { rows.push_back(child->info()); });
  return rows;
}

ChildCount DynamicSupervisor::handle_call(CountChildren) {
  return {.specs = children_.size(),
          .active = children_.size() - restarting_,
          .supervisors = supervisors_,
          .workers = children_.size() - supervisors_};
}

void DynamicSupervisor::format_status(BoundedWriter& out) const {
  out.write("one_for_one, at most ").number(spec_.intensity).write(" restarts in ");
  out.write(duration_text(spec_.period)).write(", ").number(children_.size()).write(" children");
}

SupervisorInfo DynamicSupervisor::handle_call(Describe request) {
  SupervisorInfo info{
      .strategy = "one_for_one", .intensity = spec_.intensity, .period = spec_.period};
  const uint64_t most = request.children_max == 0 ? children_.size() : request.children_max;
  children_.for_each([&](uint64_t, Child*& child) {
    if (info.children.size() < most) {
      info.children.push_back(child->info());
    } else {
      ++info.children_left_out;
    }
  });
  return info;
}

}  // namespace otp
