// Our column beside the peers: PROG THREADS WORKLOAD ARG...
//
// Workloads, as in the runner's list; what one operation is, in brackets:
//   pingpong N PAIRS (round trip) · call N CALLERS SERVERS · counter_call CLIENTS K · call_blocking
//   N (from a thread outside) · cast N PRODUCERS · send N PRODUCERS · counter CLIENTS K ·
//   spawn_exit N · spawn_wait N · idle N · idle_gs N · ring PROCESSES HOPS · skynet LEAVES · big
//   PROCESSES PINGS · timers N · restart N SUPERVISORS · tree N · dynsup N · async_stream N
//   CONCURRENCY · async_await N · latency PROCESSES PERIOD_US SECONDS HOGS
//
// Written as an application author would write them: the ordinary API, links, monitors and call
// timeouts on. Prints `NAME ns=… ops_s=… rss_kb=…` lines. Regression checks and comparisons, not a
// claim.

#include <ctime>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/workloads.h"
#include "otp/behaviour/gen_server.h"
#include "otp/runtime/system.h"

namespace bench {

using namespace otp;

int64_t clock_ns(clockid_t id) {
  timespec at;
  clock_gettime(id, &at);
  return at.tv_sec * 1'000'000'000ll + at.tv_nsec;
}
int64_t wall() { return clock_ns(CLOCK_MONOTONIC); }
int64_t cpu() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

long status_kb(const char* key) {
  FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return 0;
  char line[256];
  long value = 0;
  size_t length = std::strlen(key);
  while (std::fgets(line, sizeof line, file)) {
    if (std::strncmp(line, key, length) == 0) {
      value = std::strtol(line + length + 1, nullptr, 10);
      break;
    }
  }
  std::fclose(file);
  return value;
}

void report(const std::string& name, double operations, double ns, const std::string& extra) {
  std::printf("%s ns=%.2f ops_s=%.0f rss_kb=%ld %s\n", name.c_str(), ns / operations,
              operations * 1e9 / ns, status_kb("VmHWM"), extra.c_str());
  std::fflush(stdout);
}

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong result: %s\n", what);
  std::abort();
}

namespace {

struct Done {};
struct Get {
  using Reply = int64_t;
};
struct Add {
  using Reply = int64_t;
};
struct Inc {};

class CounterServer {
 public:
  int64_t handle_call(Get) { return count_; }
  int64_t handle_call(Add) { return ++count_; }
  void handle_cast(Inc) { ++count_; }

 private:
  int64_t count_ = 0;
};

Async<void> await_done(int64_t count) {
  for (int64_t i = 0; i < count; ++i) co_await receive<Done>();
}
// ---- pingpong

struct Ping {
  Pid from;
};
struct Pong {};
struct Finish {};

Async<void> pong() {
  for (;;) {
    auto message = co_await receive<Ping, Finish>();
    if (message.index() == 1) co_return;
    (void)send(std::get<Ping>(message).from, Pong{});
  }
}
Async<void> ping(int64_t count, Pid main) {
  Pid other = spawn_link(pong);
  for (int64_t i = 0; i < count; ++i) {
    Ping message{self()};
    (void)send(other, message);
    co_await receive<Pong>();
  }
  (void)send(other, Finish{});
  (void)send(main, Done{});
}
Async<void> pingpong(int64_t n, int64_t pairs) {
  int64_t start = wall(), each = n / pairs;
  for (int64_t i = 0; i < pairs; ++i) spawn_link(ping, each, self());
  co_await await_done(pairs);
  report("pingpong_" + std::to_string(pairs), double(each * pairs), double(wall() - start));
}

// ---- call, cast, counter

template <class M>
Async<void> caller(Server<CounterServer> server, int64_t count, Pid main) {
  for (int64_t i = 0; i < count; ++i) co_await otp::call(server, M());
  (void)send(main, Done{});
}
template <class M>
Async<int64_t> run_callers(int64_t count, int64_t callers, int64_t servers) {
  std::vector<Server<CounterServer>> all;
  for (int64_t i = 0; i < servers; ++i) {
    all.push_back((co_await start_link<CounterServer>()).or_exit());
  }
  int64_t start = wall();
  for (int64_t i = 0; i < callers; ++i) {
    spawn_link(caller<M>, all[size_t(i % servers)], count, self());
  }
  co_await await_done(callers);
  co_return wall() - start;
}
Async<void> calls(int64_t n, int64_t callers, int64_t servers) {
  int64_t each = n / callers;
  int64_t ns = co_await run_callers<Get>(each, callers, servers);
  report("call_" + std::to_string(callers) + "to" + std::to_string(servers), double(each * callers),
         double(ns));
}
Async<void> counter_calls(int64_t clients, int64_t each) {
  int64_t ns = co_await run_callers<Add>(each, clients, 1);
  report("counter_call", double(each * clients), double(ns));
}

Async<void> caster(Server<CounterServer> server, int64_t count, Pid main) {
  for (int64_t i = 0; i < count; ++i) co_await otp::cast(server, Inc());
  (void)send(main, Done{});
}
Async<void> casts(std::string name, int64_t producers, int64_t each) {
  auto server = (co_await start_link<CounterServer>()).or_exit();
  int64_t start = wall();
  for (int64_t i = 0; i < producers; ++i) spawn_link(caster, server, each, self());
  co_await await_done(producers);
  CallOptions forever{.timeout = infinity};
  int64_t total = co_await otp::call(server, Get(), forever);
  check(total == producers * each, "casts");
  report(name, double(total), double(wall() - start));
}

Async<void> sink(int64_t count, Pid main) {
  for (int64_t i = 0; i < count; ++i) co_await receive<Inc>();
  (void)send(main, Done{});
}
Async<void> sender(Pid to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) co_await send(to, Inc());
}
Async<void> sends(int64_t n, int64_t producers) {
  int64_t each = n / producers, start = wall();
  Pid to = spawn_link(sink, each * producers, self());
  for (int64_t i = 0; i < producers; ++i) spawn_link(sender, to, each);
  co_await await_done(1);
  report("send_" + std::to_string(producers) + "to1", double(each * producers),
         double(wall() - start));
}

// ---- spawn

Async<void> tell(Pid main) {
  (void)send(main, Done{});
  co_return;
}
Async<void> spawn_exit(int64_t n) {
  int64_t start = wall();
  for (int64_t i = 0; i < n; i += 1000) {
    for (int j = 0; j < 1000; ++j) spawn(tell, self());
    co_await await_done(1000);
  }
  report("spawn_exit", double(n), double(wall() - start));
}
Async<void> nothing() { co_return; }
Async<void> spawn_wait(int64_t n) {
  int64_t start = wall();
  for (int64_t i = 0; i < n; ++i) {
    spawn_monitor(nothing);
    Down down = co_await receive<Down>();
    check(down.reason.is_normal(), "spawn_wait");
  }
  report("spawn_wait", double(n), double(wall() - start));
}

Async<void> wait_for_stop() { co_await receive<Finish>(); }

Async<void> kill_all_of(std::vector<Pid> pids, std::string name) {
  int64_t start = wall();
  for (Pid pid : pids) otp::exit(pid, ExitReason::kill());
  Reference last = monitor(pids.back());
  co_await receive<Down>([last](const Down& down) { return down.reference == last; });
  for (Pid pid : pids) {
    while (is_alive(pid)) co_await yield();
  }
  report(name, double(pids.size()), double(wall() - start));
}
Async<void> idle(int64_t n) {
  std::vector<Pid> pids(static_cast<size_t>(n));
  long before = status_kb("VmRSS");
  int64_t start = wall();
  for (Pid& pid : pids) pid = spawn(wait_for_stop);
  co_await yield();
  int64_t ns = wall() - start;
  for (int i = 0; i < 100; ++i) co_await yield();
  char extra[64];
  std::snprintf(extra, sizeof extra, "bytes=%.1f",
                double(status_kb("VmRSS") - before) * 1024 / double(n));
  report("idle_spawn", double(n), double(ns), extra);
  co_await kill_all_of(std::move(pids), "idle_kill");
}
Async<void> idle_servers(int64_t n) {
  std::vector<Pid> pids(static_cast<size_t>(n));
  long before = status_kb("VmRSS");
  int64_t start = wall();
  for (Pid& pid : pids) pid = (co_await otp::start<CounterServer>()).or_exit().pid();
  int64_t ns = wall() - start;
  char extra[64];
  std::snprintf(extra, sizeof extra, "bytes=%.1f",
                double(status_kb("VmRSS") - before) * 1024 / double(n));
  report("idle_gs_spawn", double(n), double(ns), extra);
  co_await kill_all_of(std::move(pids), "idle_gs_kill");
}

// ---- ring, skynet, big

struct Next {
  Pid pid;
};
struct Hop {
  int64_t left;
};
Async<void> ring_member(Pid main) {
  Pid next = (co_await receive<Next>()).pid;
  for (;;) {
    Hop hop = co_await receive<Hop>();
    if (hop.left == 1) {
      (void)send(main, Done{});
    } else {
      (void)send(next, Hop{hop.left - 1});
    }
  }
}
Async<void> ring(int64_t processes, int64_t hops) {
  Pid first = spawn_link(ring_member, self());
  Pid previous = first;
  for (int64_t i = 1; i < processes; ++i) {
    Pid pid = spawn_link(ring_member, self());
    (void)send(previous, Next{pid});
    previous = pid;
  }
  (void)send(previous, Next{first});
  int64_t start = wall();
  (void)send(first, Hop{hops});
  co_await await_done(1);
  report("ring", double(hops), double(wall() - start));
}

struct Sum {
  int64_t value;
};
Async<void> skynet_node(Pid parent, int64_t number, int64_t size) {
  if (size == 1) {
    (void)send(parent, Sum{number});
    co_return;
  }
  int64_t part = size / 10, sum = 0;
  for (int64_t i = 0; i < 10; ++i) spawn_link(skynet_node, self(), number + i * part, part);
  for (int i = 0; i < 10; ++i) sum += (co_await receive<Sum>()).value;
  (void)send(parent, Sum{sum});
}
Async<void> skynet(int64_t leaves) {
  int64_t start = wall();
  spawn_link(skynet_node, self(), int64_t{0}, leaves);
  Sum sum = co_await receive<Sum>();
  check(sum.value == leaves * (leaves - 1) / 2, "skynet");
  report("skynet", double(leaves), double(wall() - start));
}

struct Everybody {
  std::vector<Pid> pids;
};
Async<void> big_member(int64_t pings, uint32_t random, Pid main) {
  std::vector<Pid> all = (co_await receive<Everybody>()).pids;
  for (int64_t i = 0; i < pings; ++i) {
    random = (random * 1103515245 + 12345) & 0x7fffffff;
    Ping message{self()};
    (void)send(all[(random >> 8) % all.size()], message);
    for (;;) {
      auto got = co_await receive<Ping, Pong>();
      if (got.index() == 1) break;
      (void)send(std::get<Ping>(got).from, Pong{});
    }
  }
  (void)send(main, Done{});
  co_await pong();
}
Async<void> big(int64_t processes, int64_t pings) {
  int64_t start = wall();
  std::vector<Pid> all;
  for (int64_t i = 0; i < processes; ++i) {
    all.push_back(spawn_link(big_member, pings, uint32_t(i * 7919 + 1), self()));
  }
  for (Pid pid : all) {
    Everybody everybody{all};
    (void)send(pid, std::move(everybody));
  }
  co_await await_done(processes);
  report("big", double(processes * pings), double(wall() - start));
}

// ---- timers

struct Due {
  int64_t at;
};
Async<void> timers(int64_t n) {
  std::vector<TimerRef> armed(static_cast<size_t>(n));
  int64_t start = wall();
  for (int64_t i = 0; i < n; ++i) {
    armed[size_t(i)] = send_after(std::chrono::milliseconds(600'000 + i % 1000), self(), Done{});
  }
  report("timer_arm", double(n), double(wall() - start));
  start = wall();
  for (TimerRef timer : armed) cancel_timer(timer);
  report("timer_cancel", double(n), double(wall() - start));
  int64_t used = cpu(), base = wall() + 500'000'000, late = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = base + i % 1000 * 1'000'000;
    send_after(Duration(at - wall()), self(), Due{at});
  }
  for (int64_t i = 0; i < n; ++i) late = std::max(late, wall() - (co_await receive<Due>()).at);
  char extra[64];
  std::snprintf(extra, sizeof extra, "max_late_ms=%.1f", double(late) / 1e6);
  report("timer_fire_cpu", double(n), double(cpu() - used), extra);
}

}  // namespace

/// A thread outside asks a server, one call at a time.
void blocking_calls(System& system, int64_t n) {
  auto server = otp::start<CounterServer>(system).or_exit();
  int64_t start = wall();
  for (int64_t i = 0; i < n; ++i) otp::call(system, server, Get());
  report("call_blocking", double(n), double(wall() - start));
}

std::map<std::string, Workload> core_workloads() {
  return {
      {"pingpong", [](Numbers a) { return pingpong(a[0], a[1]); }},
      {"call", [](Numbers a) { return calls(a[0], a[1], a[2]); }},
      {"counter_call", [](Numbers a) { return counter_calls(a[0], a[1]); }},
      {"cast",
       [](Numbers a) { return casts("cast_" + std::to_string(a[1]) + "to1", a[1], a[0] / a[1]); }},
      {"counter", [](Numbers a) { return casts("counter_cast", a[0], a[1]); }},
      {"send", [](Numbers a) { return sends(a[0], a[1]); }},
      {"spawn_exit", [](Numbers a) { return spawn_exit(a[0]); }},
      {"spawn_wait", [](Numbers a) { return spawn_wait(a[0]); }},
      {"idle", [](Numbers a) { return idle(a[0]); }},
      {"idle_gs", [](Numbers a) { return idle_servers(a[0]); }},
      {"ring", [](Numbers a) { return ring(a[0], a[1]); }},
      {"skynet", [](Numbers a) { return skynet(a[0]); }},
      {"big", [](Numbers a) { return big(a[0], a[1]); }},
      {"timers", [](Numbers a) { return timers(a[0]); }},
  };
}

}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s THREADS WORKLOAD ARG...\n", argv[0]);
    return 2;
  }
  otp::SystemOptions options;
  options.cores = static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10));
  bench::Numbers numbers{};
  for (int i = 3; i < argc && i < 7; ++i) {
    numbers[static_cast<size_t>(i - 3)] = std::strtoll(argv[i], nullptr, 10);
  }
  otp::System system(options);
  if (std::strcmp(argv[2], "call_blocking") == 0) {
    bench::blocking_calls(system, numbers[0]);
    return 0;
  }
  auto workloads = bench::core_workloads();
  workloads.merge(bench::supervision_workloads());
  workloads.merge(bench::task_workloads());
  workloads.merge(bench::latency_workloads());
  auto found = workloads.find(argv[2]);
  if (found == workloads.end()) {
    std::fprintf(stderr, "no workload %s\n", argv[2]);
    return 2;
  }
  system.run(found->second, numbers);
  return 0;
}
