#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "otp/base/bounded_writer.h"
#include "otp/base/id_map.h"
#include "otp/behaviour/gen_server.h"
#include "otp/supervision/child_info.h"
#include "otp/supervision/child_spec.h"
#include "otp/supervision/internal/restart_window.h"

/// DynamicSupervisor: a supervisor of children that come and go, however many.
///
///     auto sup = (co_await otp::DynamicSupervisor::start_link({})).or_exit();
///     auto spec = otp::child<Session>({}, {.user = 7}, {.restart = otp::Restart::temporary});
///     auto started = co_await otp::DynamicSupervisor::start_child(sup, std::move(spec));
///     if (!started.ok()) co_return;                        // started.error() says why
///     otp::Server<Session> session(started.value().pid);   // to call, to cast, to monitor
///     co_await otp::stop(session);                         // or it ends by itself
///
/// otp::stop() ends a child as if it had ended by itself with `normal`: a permanent one is started
/// again. DynamicSupervisor::terminate_child(sup, pid) stops a child for good. A child that was
/// restarted has a new pid and the former one is `not_found`: who has to find it again gives it a
/// name (ChildOptions::name) or a key in a Registry.
///
/// Children have no ids and no order; each ends and is restarted for itself (one_for_one). Of a
/// child that ended for good nothing is kept. Stopping tells all at once and takes as long as the
/// slowest. Starting, stopping and restarting a child cost the same whether there are ten or a
/// million. For a few known children whose order matters use Supervisor.
///
/// More than `intensity` restarts within `period`: it stops its children and exits with `shutdown`;
/// its own supervisor then decides. It logs as Supervisor does, but of more than ten children that
/// it stops together only how many they are.
///
/// OTP: Elixir's DynamicSupervisor, with its defaults (3 restarts in 5 s); simple_one_for_one.
namespace otp {

class DynamicSupervisor;
using DynamicSupervisorRef = Server<DynamicSupervisor>;

/// OTP: the options of DynamicSupervisor.init/1.
struct DynamicSupervisorSpec {
  uint32_t intensity = 3;
  Duration period = kDefaultPeriod;
  /// The most children at a time, those that wait for their restart included. 0: no limit.
  uint64_t children_max = 0;
};

class DynamicSupervisor {
 public:
  // ---- Starting

  /// Errors: {supervisor_data,Why}, {already_started,Pid}.
  static Async<Result<DynamicSupervisorRef>> start_link(DynamicSupervisorSpec spec = {},
                                                        StartOptions options = {});

  // ---- Client API: runs in the caller's process, waits without limit, exits like otp::call.

  struct StartChild;
  struct TerminateChild;
  struct WhichChildren;
  struct CountChildren;

  /// Starts a child; its init must not call this supervisor.
  ///
  /// Returns: pid and info; `ignored` when the start was: nothing is kept then.
  /// Errors:  max_children, the reason of the failed start, or what is wrong with the
  ///          specification.
  static PendingCall<DynamicSupervisor, StartChild> start_child(DynamicSupervisorRef supervisor,
                                                                ChildSpec spec);
  /// Stops a child as its `shutdown` says, for good whatever its `restart`; returns when it is
  /// gone. Error: not_found, also for one that waits for its restart and for its former pids.
  static PendingCall<DynamicSupervisor, TerminateChild> terminate_child(
      DynamicSupervisorRef supervisor, Pid child);
  /// The children in no particular order, without ids.
  static PendingCall<DynamicSupervisor, WhichChildren> which_children(
      DynamicSupervisorRef supervisor);
  static PendingCall<DynamicSupervisor, CountChildren> count_children(
      DynamicSupervisorRef supervisor);

  // ---- The requests behind it.

  struct StartChild {
    using Reply = Result<StartedChild>;
    ChildSpec spec;
  };
  struct TerminateChild {
    using Reply = Result<void>;
    Pid child;
  };
  struct WhichChildren {
    using Reply = std::vector<ChildInfo>;
  };
  struct CountChildren {
    using Reply = ChildCount;
  };
  struct Describe {
    using Reply = SupervisorInfo;
    uint64_t children_max = 0;  ///< in the answer; 0 = all
  };

  // ---- Callbacks: run in the supervisor's process.

  static constexpr ChildType kChildType = ChildType::supervisor;
  using Args = DynamicSupervisorSpec;
  /// A planned restart of the child that had this pid.
  struct RestartDue {
    Pid former;
    bool count = true;  ///< it is a new attempt, which counts
  };
  using Info = Protocol<RestartDue>;

  explicit DynamicSupervisor(Args args);
  ~DynamicSupervisor();
  Init init();
  Async<Result<StartedChild>> handle_call(StartChild request);
  Async<Result<void>> handle_call(TerminateChild request);
  std::vector<ChildInfo> handle_call(WhichChildren);
  ChildCount handle_call(CountChildren);
  SupervisorInfo handle_call(Describe request);
  Async<CastResult> handle_info(ExitMessage message);
  Async<CastResult> handle_info(RestartDue due);
  Async<void> terminate(ExitReason reason);
  /// For reports and sys: limits and the number of children.
  void format_status(BoundedWriter& out) const;

 private:
  struct Child;
  struct Stopping;

  Child* find(Pid pid);
  void remember(Child& child, Pid pid);
  void forget(Child& child);
  Async<CastResult> restart(Child& child, ExitReason reason);
  Async<void> restart_now(Child& child);
  void plan_restart(Child& child, Duration pause, bool count);
  /// Returns why it ended, as one of the two that it was given.
  static const ExitReason& finish_one(Child* child, const Down& down);

  const DynamicSupervisorSpec spec_;
  internal::RestartWindow window_;
  internal::IdMap<Child*> children_;  // by pid; of one that restarts, its former pid
  uint64_t supervisors_ = 0;          // children of that type
  uint64_t restarting_ = 0;           // children in that state
};

/// A dynamic supervisor as child of a supervisor.
ChildSpec dynamic_supervisor(std::string id, DynamicSupervisorSpec spec = {},
                             ChildOptions options = {});

}  // namespace otp
