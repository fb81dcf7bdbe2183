#include "otp/application/controller.h"

#include <utility>

#include "otp/supervision/supervisor.h"

namespace otp::internal {

namespace {

struct Running {
  Application application;
  Pid supervisor;
};

class Controller {
 public:
  Controller(std::vector<PlannedApplication> plan, ControllerHooks hooks)
      : plan_(std::move(plan)), hooks_(std::move(hooks)) {}

  Async<int> run() {
    trap_exit(true);
    co_await start_all();
    while (!running_.empty() && !stopping_) {
      auto message = co_await receive<StopApplications, ExitMessage>();
      if (message.index() == 0) {
        stopping_ = true;
      } else {
        ended(std::get<ExitMessage>(message));
      }
    }
    while (!running_.empty()) co_await stop_last();
    co_return status_;
  }

 private:
  Async<void> start_all() {
    std::string details;
    for (PlannedApplication& planned : plan_) {
      std::string name = planned.application.name;
      StartOptions options{.name = top_supervisor_name(name)};
      auto started = co_await Supervisor::start_link(std::move(planned.tree), std::move(options));
      if (!started.ok()) {
        fail(name + " did not start: " + started.error().to_string());
        co_return;
      }
      running_.push_back({planned.application, started.value().pid()});
      if (co_await receive<StopApplications>(after(std::chrono::seconds(0)))) {
        stopping_ = true;
        co_return;
      }
      if (!planned.application.ready) continue;
      if (!co_await add_details(planned.application, details)) co_return;
    }
    co_await hooks_.ready(std::move(details));
  }

  Async<bool> add_details(const Application& application, std::string& details) {
    std::string text, failure;
    try {
      text = co_await application.ready();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty()) {
      fail(application.name + " is not ready: " + failure);
      co_return false;
    }
    if (!details.empty() && !text.empty()) details += ' ';
    details += text;
    co_return true;
  }

  void fail(const std::string& line) {
    hooks_.report(line);
    status_ = 1;
    stopping_ = true;
  }

  // A top supervisor ended by itself: it gave up, or had nothing left to do.
  void ended(const ExitMessage& message) {
    for (auto it = running_.begin(); it != running_.end(); ++it) {
      if (it->supervisor != message.from) continue;
      ApplicationType type = it->application.type;
      std::string line = it->application.name + " ended: " + message.reason.to_string();
      running_.erase(it);
      if (type == ApplicationType::permanent ||
          (type == ApplicationType::transient && message.reason.is_abnormal())) {
        fail(line);
      } else if (message.reason.is_abnormal()) {
        hooks_.report(line);
      }
      return;
    }
  }

  Async<void> stop_last() {
    Running last = std::move(running_.back());
    running_.pop_back();
    hooks_.report("stopping " + last.application.name);
    Reference reference = monitor(last.supervisor);
    otp::exit(last.supervisor, ExitReason::shutdown());
    auto ours = [reference](const Down& down) { return down.reference == reference; };
    co_await receive<Down>(ours);
    hooks_.report("stopped " + last.application.name);
  }

  std::vector<PlannedApplication> plan_;
  ControllerHooks hooks_;
  std::vector<Running> running_;
  int status_ = 0;
  bool stopping_ = false;
};

}  // namespace

std::string top_supervisor_name(const std::string& application) { return application + "_sup"; }

Async<int> control_applications(std::vector<PlannedApplication> plan, ControllerHooks hooks) {
  Controller controller(std::move(plan), std::move(hooks));
  co_return co_await controller.run();
}

}  // namespace otp::internal
