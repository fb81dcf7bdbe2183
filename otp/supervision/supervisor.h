#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/base/bounded_writer.h"
#include "otp/behaviour/gen_server.h"
#include "otp/supervision/child_info.h"
#include "otp/supervision/child_spec.h"
#include "otp/supervision/internal/child_list.h"
#include "otp/supervision/internal/restart_window.h"

/// Supervisor: a process that starts, restarts and stops other processes, its children.
///
///     auto sup = (co_await otp::Supervisor::start_link({
///         .strategy = otp::Strategy::one_for_one,
///         .children = {otp::child<Ledger>("ledger", {.currency = "EUR"}, {.name = "ledger"})},
///     })).or_exit();
///     auto audit = co_await otp::Supervisor::start_child(sup, otp::child<Audit>("audit"));
///
/// Children start in order, each when the init of the one before has finished, and stop in reverse.
/// One that ends is restarted as its `restart` says, and with it the others that `strategy` names.
/// More than `intensity` restarts within `period`: the supervisor stops its children and exits with
/// `shutdown`; its own supervisor then decides. A restart that fails counts as one too; between two
/// attempts requests are served.
///
/// When its parent ends or tells it to, it stops its children in reverse order and exits with the
/// parent's reason. A `kill` leaves it no time for that.
///
/// It logs the ends of children that are not in order as errors and starts at level info, in the
/// domain `otp.supervisor`; each child that it stops at level info, in kStopLogDomain.
///
/// OTP: supervisor. simple_one_for_one is DynamicSupervisor. Differs: an exit signal that a child
/// sends to its supervisor while it lives is not taken for its end; `backoff`, `mailbox` and
/// `drop_expired` of a ChildSpec are ours. Not for calling from a child's init: the supervisor
/// waits for that.
namespace otp {

class Supervisor;
/// The address of a supervisor.
using SupervisorRef = Server<Supervisor>;
/// Runs in the supervisor's process at each start of it; may give Ignored. OTP: init/1.
using SupervisorInit = std::function<Result<SupervisorSpec>()>;

/// A line for each child that a supervisor stops, in that order, with its reason and how long it
/// took. A domain of its own: a node that ends shows it without all else that is said at level
/// info.
inline constexpr std::string_view kStopLogDomain = "otp.supervisor.stop";

class Supervisor {
 public:
  // ---- Starting

  /// Starts a supervisor and its children, linked to the calling process; returns when the last
  /// child is up.
  ///
  /// Errors: a child that fails to start stops those before it; the error is
  ///         {shutdown,{failed_to_start_child,Id,Reason}}, which a caller that does not trap exits
  ///         gets as exit signal too. {start_spec,Why} and {supervisor_data,Why} name what is wrong
  ///         in the specification; then nothing was started. {already_started,Pid} for a taken
  ///         name.
  /// OTP:    supervisor:start_link/2,3.
  static Async<Result<SupervisorRef>> start_link(SupervisorSpec spec, StartOptions options = {});
  static Async<Result<SupervisorRef>> start_link(SupervisorInit init, StartOptions options = {});

  // ---- Client API: runs in the caller's process, waits without limit, exits like otp::call.

  struct StartChild;
  struct TerminateChild;
  struct RestartChild;
  struct DeleteChild;
  struct WhichChildren;
  struct CountChildren;
  struct GetChildSpec;

  /// Adds a child after all others and starts it. Its init must not call this supervisor.
  ///
  /// Returns: pid and info; no pid when the start was ignored: the specification is kept then,
  ///          unless the child is temporary.
  /// Errors:  {already_started,Pid}, already_present, or the reason of the failed start: nothing is
  ///          added then. A bad specification: what is wrong with it.
  static PendingCall<Supervisor, StartChild> start_child(SupervisorRef supervisor, ChildSpec spec);
  /// Stops a child and keeps its specification, unless it is temporary. Error: not_found.
  static PendingCall<Supervisor, TerminateChild> terminate_child(SupervisorRef supervisor,
                                                                 std::string id);
  /// Starts a stopped child again. Errors: running, restarting, not_found, or that of the start.
  static PendingCall<Supervisor, RestartChild> restart_child(SupervisorRef supervisor,
                                                             std::string id);
  /// Removes the specification of a stopped child. Errors: running, restarting, not_found.
  static PendingCall<Supervisor, DeleteChild> delete_child(SupervisorRef supervisor,
                                                           std::string id);
  /// The children, the newest first.
  static PendingCall<Supervisor, WhichChildren> which_children(SupervisorRef supervisor);
  static PendingCall<Supervisor, CountChildren> count_children(SupervisorRef supervisor);
  /// The specification of a child. Error: not_found. OTP: get_childspec/2.
  static PendingCall<Supervisor, GetChildSpec> get_child_spec(SupervisorRef supervisor,
                                                              std::string id);

  // ---- The requests behind it, for callers that want their own timeout.

  struct StartChild {
    using Reply = Result<StartedChild>;
    ChildSpec spec;
  };
  struct TerminateChild {
    using Reply = Result<void>;
    std::string id;
  };
  struct RestartChild {
    using Reply = Result<StartedChild>;
    std::string id;
  };
  struct DeleteChild {
    using Reply = Result<void>;
    std::string id;
  };
  struct WhichChildren {
    using Reply = std::vector<ChildInfo>;
  };
  struct CountChildren {
    using Reply = ChildCount;
  };
  struct GetChildSpec {
    using Reply = Result<ChildSpec>;
    std::string id;
  };
  struct Describe {
    using Reply = SupervisorInfo;
  };

  // ---- Callbacks: run in the supervisor's process.

  static constexpr ChildType kChildType = ChildType::supervisor;
  struct Args {
    std::shared_ptr<const SupervisorSpec> spec{};
    SupervisorInit init{};
  };
  /// A planned restart of a child, void if the child was touched since.
  struct RestartDue {
    std::string id;
    uint64_t attempt = 0;
    bool count = true;  ///< it is a new attempt, which counts
  };
  using Info = Protocol<RestartDue>;

  explicit Supervisor(Args args);
  Async<Init> init();
  Async<Result<StartedChild>> handle_call(StartChild request);
  Async<Result<void>> handle_call(TerminateChild request);
  Async<Result<StartedChild>> handle_call(RestartChild request);
  Result<void> handle_call(DeleteChild request);
  std::vector<ChildInfo> handle_call(WhichChildren);
  ChildCount handle_call(CountChildren);
  Result<ChildSpec> handle_call(GetChildSpec request);
  SupervisorInfo handle_call(Describe);
  Async<CastResult> handle_info(ExitMessage message);
  Async<CastResult> handle_info(RestartDue due);
  Async<void> terminate(ExitReason reason);
  /// For reports and sys: strategy, limits and children.
  void format_status(BoundedWriter& out) const;

 private:
  using Child = internal::Child;

  struct Range {  // children that stop and start together, in start order
    Child* first;
    Child* last;
  };

  Async<Result<StartedChild>> start_one(Child& child);
  Async<CastResult> child_ended(Child& child, ExitReason reason);
  Async<CastResult> restart(Child& child, ExitReason reason);
  Async<void> restart_now(Child& child);
  Async<void> start_range(Range range);
  Async<void> stop_one(Child& child);
  Async<void> take_ended();
  Async<void> stop_range(Range range);
  Range range_of(Child& child) const;
  void start_failed(Child& child, const ExitReason& reason);
  void plan_restart(Child& child, Duration pause, bool count);
  void forget_or_stop(Child& child);
  bool significant_end(const Child& child) const;

  Args args_;
  Strategy strategy_ = kDefaultStrategy;
  AutoShutdown auto_shutdown_ = AutoShutdown::never;
  uint32_t intensity_ = 0;
  Duration period_ = kDefaultPeriod;
  internal::RestartWindow window_{0, kDefaultPeriod};
  internal::ChildList children_;
};

/// A supervisor as child of a supervisor. OTP: type supervisor, shutdown infinity unless given.
ChildSpec supervisor(std::string id, SupervisorSpec spec, ChildOptions options = {});

}  // namespace otp

template <>
struct otp::Shareable<otp::Supervisor::RestartDue> : std::true_type {};
