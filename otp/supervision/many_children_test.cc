// Supervisors and very many children, one after the other: nothing may be kept of those that ended.

#include <unistd.h>

#include <cstdio>

#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/testing/pool_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

constexpr int kWave = 1000;
constexpr size_t kGrowthMax = 10u << 20;

class Clerk {
 public:
  struct Args {
    std::string paper{};  // 1 KiB
  };
  struct End {
    ExitReason reason;
  };
  explicit Clerk(Args args) : args_(std::move(args)) {}
  CastResult handle_cast(End end) { return otp::stop(std::move(end.reason)); }

 private:
  Args args_;
};

/// Bytes of this OS process that are in memory.
size_t resident() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  require(file != nullptr, "/proc/self/statm");
  size_t total = 0, pages = 0;
  const int read = std::fscanf(file, "%zu %zu", &total, &pages);
  std::fclose(file);
  require(read == 2, "/proc/self/statm");
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

enum class Way { temporary, transient, killed, by_a_dead_caller };

Async<void> start_some(DynamicSupervisorRef sup, Restart restart, int count, Pid to) {
  std::vector<Pid> pids;
  for (int i = 0; i < count; ++i) {
    Clerk::Args args{std::string(1024, 'x')};
    ChildSpec spec = child<Clerk>({}, std::move(args), {.restart = restart});
    auto started = co_await Dynamic::start_child(sup, std::move(spec));
    require(started.ok(), "start");
    pids.push_back(started.value().pid);
  }
  (void)otp::send(to, std::move(pids));
}

Async<void> wave(DynamicSupervisorRef sup, Way way) {
  const Restart restart = way == Way::transient ? Restart::transient : Restart::temporary;
  if (way == Way::by_a_dead_caller) {
    spawn(start_some, sup, restart, kWave, self());
  } else {
    co_await start_some(sup, restart, kWave, self());
  }
  auto pids = co_await receive<std::vector<Pid>>();
  std::vector<Reference> references;
  for (Pid pid : pids) {
    references.push_back(monitor(pid));
    if (way == Way::killed) {
      otp::exit(pid, ExitReason::kill());
    } else {
      Clerk::End end{ExitReason::normal()};
      (void)otp::cast(Server<Clerk>(pid), std::move(end));
    }
  }
  for (Reference each : references) (void)co_await testing::down_of(each);
}

struct Seen {
  size_t early = 0;  // resident after a tenth of the waves
  size_t late = 0;
};

Async<Seen> waves_of(int waves, Way way) {
  auto sup = (co_await Dynamic::start_link({})).or_exit();
  Seen seen;
  for (int i = 0; i < waves; ++i) {
    co_await wave(sup, way);
    if (i + 1 == waves / 10) seen.early = resident();
  }
  for (uint64_t kept = 1; kept > 0;) {
    auto count = co_await Dynamic::count_children(sup);
    kept = count.specs + count.active;
    if (kept > 0) co_await otp::yield();
  }
  seen.late = resident();
  co_return seen;
}

void run_waves(int waves, Way way) {
  SystemOptions options;
  options.cores = 2;
  System system(options);
  const Seen seen = system.run(waves_of, waves, way);
  INFO("way " << static_cast<int>(way) << ", resident after a tenth: " << seen.early
              << ", after all: " << seen.late);
  CHECK(seen.early > 0);
  CHECK(seen.late <= seen.early + kGrowthMax);
}

}  // namespace

TEST_CASE("R-003 memory is flat over 100,000 children", "[dynamic_supervisor]") {
  for (Way way : {Way::temporary, Way::transient, Way::killed, Way::by_a_dead_caller}) {
    run_waves(25, way);
  }
}

TEST_CASE("R-003 memory is flat over 1,000,000 children", "[.][slow]") {
  for (Way way : {Way::temporary, Way::transient, Way::killed, Way::by_a_dead_caller}) {
    run_waves(1000, way);
  }
}
