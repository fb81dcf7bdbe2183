#include "otp/application/application_master.h"

#include <utility>

#include "otp/application/controller.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime_log.h"
#include "otp/supervision/supervisor.h"

namespace otp::internal {

namespace {

// What stands for a failing callback in reasons: {Name,start,[normal,[]]}.
Term call_term(const std::string& name, const char* function, std::vector<Term> arguments) {
  arguments.push_back(Term::literal("normal"));
  arguments.push_back(Term::list({}));
  return Term::tuple({Term::atom(name), Term::literal(function), Term::list(std::move(arguments))});
}

ExitReason bad_return(Term call, Term what) {
  return ExitReason::tagged("bad_return", Term::tuple({std::move(call), std::move(what)}));
}

Term exit_term(std::exception_ptr thrown) {
  return Term::tuple({Term::literal("EXIT"), reason_of(std::move(thrown)).term()});
}

class Master {
 public:
  Master(const Application& application, Pid controller)
      : application_(application), controller_(controller) {}

  Async<void> run() {
    trap_exit(true);
    if (auto wrong = co_await start()) {
      // What the start linked to this process ends with it; the tree it ends by itself, in order.
      if (supervisor_) co_await stop_tree();
      tell(MasterNews::What::failed, std::move(*wrong));
      otp::exit(ExitReason::shutdown());
    }
    tell(MasterNews::What::started, {});
    for (;;) {
      auto message = co_await receive<StopMaster, ExitMessage>();
      if (message.index() == 0) co_return co_await stop();
      ExitMessage& end = std::get<ExitMessage>(message);
      if (end.from == controller_) otp::exit(std::move(end.reason));
      if (!supervisor_ || end.from != supervisor_) continue;
      co_await prepare_stop();
      co_await after_stop();
      tell(MasterNews::What::ended, std::move(end.reason));
      otp::exit(ExitReason::shutdown());
    }
  }

 private:
  void tell(MasterNews::What what, ExitReason reason) {
    MasterNews news{what, application_.name, self(), supervisor_, std::move(reason)};
    (void)otp::cast(Server<ApplicationController>(controller_), std::move(news));
  }

  Async<std::optional<ExitReason>> start() {
    if (auto wrong = co_await start_tree()) co_return wrong;
    for (const StartPhase& phase : application_.start_phases) {
      if (auto wrong = co_await run_phase(phase)) co_return wrong;
    }
    co_return std::nullopt;
  }

  Async<std::optional<ExitReason>> start_tree() {
    if (!application_.start && !application_.tree) co_return std::nullopt;  // no processes
    const Term call = call_term(application_.name, "start", {});
    std::exception_ptr thrown;
    std::optional<Result<StartedApplication>> started;
    try {
      SupervisorSpec tree = application_.tree ? application_.tree() : SupervisorSpec();
      started.emplace(co_await start_with(std::move(tree)));
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) co_return bad_return(call, exit_term(std::move(thrown)));
    if (started->ignored()) co_return bad_return(call, Term::literal("ignore"));
    if (!started->ok()) co_return ExitReason(Term::tuple({started->error().term(), call}));
    supervisor_ = started->value().supervisor;
    state_ = std::move(started->value().state);
    if (!supervisor_) co_return bad_return(call, state_);
    link(supervisor_);
    co_return std::nullopt;
  }

  Async<Result<StartedApplication>> start_with(SupervisorSpec tree) {
    if (application_.start) co_return co_await application_.start(std::move(tree));
    StartOptions options{.name = top_supervisor_name(application_.name)};
    auto started = co_await Supervisor::start_link(std::move(tree), std::move(options));
    if (!started.ok()) co_return started.error();
    co_return StartedApplication{started.value().pid()};
  }

  Async<std::optional<ExitReason>> run_phase(const StartPhase& phase) {
    std::exception_ptr thrown;
    std::optional<Result<void>> result;
    try {
      result.emplace(co_await phase.run());
    } catch (...) {
      thrown = std::current_exception();
    }
    std::vector<Term> arguments{Term::atom(phase.name)};
    Term call = call_term(application_.name, "start_phase", std::move(arguments));
    if (thrown) co_return bad_return(std::move(call), exit_term(std::move(thrown)));
    if (result->ok()) co_return std::nullopt;
    co_return ExitReason(Term::tuple({result->error().term(), std::move(call)}));
  }

  Async<void> stop() {
    co_await prepare_stop();
    if (supervisor_) co_await stop_tree();
    co_await after_stop();
  }

  Async<void> stop_tree() {
    otp::exit(supervisor_, ExitReason::shutdown());
    const Reference reference = monitor(supervisor_);
    auto ours = [reference](const Down& down) { return down.reference == reference; };
    co_await receive<Down>(ours);
  }

  Async<void> prepare_stop() {
    if (!application_.prep_stop) co_return;
    std::exception_ptr thrown;
    try {
      state_ = co_await application_.prep_stop(state_);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) report("prep_stop", std::move(thrown));
  }

  Async<void> after_stop() {
    if (!application_.stop) co_return;
    std::exception_ptr thrown;
    try {
      co_await application_.stop(state_);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (thrown) report("stop", std::move(thrown));
  }

  // A callback that fails while its application stops is no reason not to stop.
  void report(const char* callback, std::exception_ptr thrown) {
    log_runtime(env().system->log(), LogLevel::error,
                application_.name + ": " + callback +
                    " failed: " + reason_of(std::move(thrown)).to_string());
  }

  const Application& application_;
  const Pid controller_;
  Pid supervisor_;
  Term state_;
};

}  // namespace

std::string top_supervisor_name(const std::string& application) { return application + "_sup"; }

Async<void> application_master(const Application* application, uint32_t group, Pid controller) {
  self_process().set_group(group);
  Master master(*application, controller);
  co_await master.run();
}

}  // namespace otp::internal
