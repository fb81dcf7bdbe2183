// latency PROCESSES PERIOD_US SECONDS HOGS: each process calls one server once a period; how late
// its reply comes after the call was due, and how long the call itself takes. Hogs compute all the
// time.

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <vector>

#include "bench/workloads.h"
#include "otp/behaviour/gen_server.h"

namespace bench {

using namespace otp;

namespace {

struct Ask {
  using Reply = int64_t;
};
class Answerer {
 public:
  int64_t handle_call(Ask) { return ++asked_; }

 private:
  int64_t asked_ = 0;
};

struct Times {
  std::vector<int64_t> calls;  // ns
  std::vector<int64_t> whole;  // from when it was due
};

Async<void> client(Server<Answerer> server, int64_t first, int64_t period, int64_t rounds,
                   Pid main) {
  Times times;
  for (int64_t i = 0; i < rounds; ++i) {
    int64_t due = first + i * period;
    if (int64_t left = due - wall(); left > 0) co_await otp::sleep(Duration(left));
    int64_t start = wall();
    co_await otp::call(server, Ask());
    int64_t end = wall();
    times.calls.push_back(end - start);
    times.whole.push_back(end - due);
  }
  (void)send(main, std::move(times));
}

Async<void> hog() {
  for (;;) {
    for (int64_t until = wall() + 20'000; wall() < until;) {}
    co_await yield();
  }
}

void append(std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}
double microseconds(const std::vector<int64_t>& sorted, double part) {
  size_t at = static_cast<size_t>(part * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at]) / 1000;
}

Async<void> latency(int64_t processes, int64_t period_us, int64_t seconds, int64_t hogs) {
  auto server = (co_await start_link<Answerer>()).or_exit();
  for (int64_t i = 0; i < hogs; ++i) spawn_link(hog);
  int64_t period = period_us * 1000, rounds = seconds * 1'000'000 / period_us;
  int64_t cpu_before = cpu(), before = wall(), start = before + 200'000'000;
  for (int64_t i = 0; i < processes; ++i) {
    spawn_link(client, server, start + i * period / processes, period, rounds, self());
  }
  Times all;
  for (int64_t i = 0; i < processes; ++i) {
    Times times = co_await receive<Times>();
    append(all.calls, times.calls);
    append(all.whole, times.whole);
  }
  double busy = double(cpu() - cpu_before) * 100 / double(wall() - before);
  std::sort(all.calls.begin(), all.calls.end());
  std::sort(all.whole.begin(), all.whole.end());
  std::printf(
      "latency_hog%lld n=%zu e2e_p50_us=%.1f e2e_p99_us=%.1f e2e_p999_us=%.1f e2e_max_us=%.1f "
      "call_p50_us=%.1f call_p99_us=%.1f call_p999_us=%.1f cpu_pct=%.1f\n",
      static_cast<long long>(hogs), all.calls.size(), microseconds(all.whole, .5),
      microseconds(all.whole, .99), microseconds(all.whole, .999), microseconds(all.whole, 1),
      microseconds(all.calls, .5), microseconds(all.calls, .99), microseconds(all.calls, .999),
      busy);
  std::fflush(stdout);
}

}  // namespace

std::map<std::string, Workload> latency_workloads() {
  return {{"latency", [](Numbers a) { return latency(a[0], a[1], a[2], a[3]); }}};
}

}  // namespace bench
