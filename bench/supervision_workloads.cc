// restart N SUPERVISORS (crash to the new child ready) · tree N (start, ordered stop, per child) ·
// dynsup N (the same under a DynamicSupervisor)

#include <deque>
#include <string>
#include <vector>

#include "bench/workloads.h"
#include "otp/behaviour/gen_server.h"
#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/supervisor.h"

namespace bench {

using namespace otp;

namespace {

struct Up {
  Pid pid;
};
struct Crash {};

/// Says that it is up, and ends abnormally when it is told to.
class Fragile {
 public:
  struct Args {
    Pid tell{};
  };
  explicit Fragile(Args args) {
    Up up{self()};
    (void)send(args.tell, up);
  }
  CastResult handle_cast(Crash) { return otp::stop(ExitReason::atom("crash")); }
};

class Idle {
 public:
  void handle_cast(Crash) {}
};

Async<void> restarts(int64_t n, int64_t supervisors) {
  for (int64_t i = 0; i < supervisors; ++i) {
    SupervisorSpec spec;
    spec.intensity = 1'000'000'000;
    spec.period = std::chrono::seconds(1);
    spec.children.push_back(child<Fragile>("c", {.tell = self()}));
    (co_await Supervisor::start_link(std::move(spec))).or_exit();
  }
  std::deque<Pid> up;
  for (int64_t i = 0; i < supervisors; ++i) up.push_back((co_await receive<Up>()).pid);
  int64_t start = wall();
  for (int64_t i = 0; i < n; ++i) {
    (void)cast(Server<Fragile>(up.front()), Crash());
    up.pop_front();
    up.push_back((co_await receive<Up>()).pid);
  }
  report("restart_" + std::to_string(supervisors) + "sup", double(n), double(wall() - start));
}

Async<void> tree(int64_t n) {
  trap_exit(true);
  SupervisorSpec spec;
  for (int64_t i = 0; i < n; ++i) spec.children.push_back(child<Idle>(std::to_string(i)));
  int64_t start = wall();
  auto supervisor = (co_await Supervisor::start_link(std::move(spec))).or_exit();
  int64_t up = wall();
  Pid pid = supervisor.pid();
  otp::exit(pid, ExitReason::shutdown());
  auto ours = [pid](const ExitMessage& message) { return message.from == pid; };
  co_await receive<ExitMessage>(ours);
  int64_t down = wall();
  report("tree_start_" + std::to_string(n), double(n), double(up - start));
  report("tree_stop_" + std::to_string(n), double(n), double(down - up));
}

Async<void> dynamic(int64_t n) {
  trap_exit(true);
  auto supervisor = (co_await DynamicSupervisor::start_link()).or_exit();
  int64_t start = wall();
  ChildSpec spec = child<Idle>("c");
  for (int64_t i = 0; i < n; ++i) {
    (co_await DynamicSupervisor::start_child(supervisor, spec)).or_exit();
  }
  int64_t up = wall();
  co_await otp::stop(supervisor);
  int64_t down = wall();
  report("dynsup_start_" + std::to_string(n), double(n), double(up - start));
  report("dynsup_stop_" + std::to_string(n), double(n), double(down - up));
}

}  // namespace

std::map<std::string, Workload> supervision_workloads() {
  return {
      {"restart", [](Numbers a) { return restarts(a[0], a[1]); }},
      {"tree", [](Numbers a) { return tree(a[0]); }},
      {"dynsup", [](Numbers a) { return dynamic(a[0]); }},
  };
}

}  // namespace bench
