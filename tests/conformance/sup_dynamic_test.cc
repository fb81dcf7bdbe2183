#include "otp/supervision/dynamic_supervisor.h"

#include <ctime>

#include "otp/supervision/supervisor.h"
#include "otp/supervision/testing/pool_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

// A start function that gives back what it was made with.
struct Gives {
  Result<StartedChild> result;
  Async<Result<StartedChild>> operator()() const { co_return result; }
};
// The processor time of stopping that many children one by one; of a dynamic supervisor (1) or a
// static one (2).
double seconds_for(int children, int kind) {
  Simulator simulator(7);
  timespec before{}, after{};
  simulator.run(
      [](int n, int which, timespec* begin) -> Async<void> {
        auto dynamic = co_await start_dynamic();
        auto fixed = (co_await Supervisor::start_link(SupervisorSpec{})).or_exit();
        std::vector<Pid> pids;
        for (int i = 0; i < n; ++i) {
          ChildSpec spec = nameless();
          spec.id = std::to_string(i);
          if (which == 1) {
            pids.push_back(co_await add(dynamic, spec));
          } else {
            require((co_await Supervisor::start_child(fixed, spec)).ok(), "start");
          }
        }
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, begin);
        for (int i = 0; i < n; ++i) {
          if (which == 1) {
            (void)co_await Dynamic::terminate_child(dynamic, pids[static_cast<size_t>(i)]);
          } else {
            (void)co_await Supervisor::terminate_child(fixed, std::to_string(i));
          }
        }
        require((co_await Dynamic::count_children(dynamic)).specs == 0, "all");
        require((co_await Supervisor::count_children(fixed)).specs == 0, "all");
      },
      children, kind, &before);
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  return static_cast<double>(after.tv_sec - before.tv_sec) +
         static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
}
void throw_in(Pid pid) { (void)otp::cast(Server<Worker>(pid), Worker::Throw{}); }

}  // namespace

TEST_CASE("SUP-043 children of a dynamic supervisor have no ids", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start_dynamic();
    Pid a = co_await add(sup, nameless());
    for (int i = 1; i < 10; ++i) require(co_await add(sup, nameless()) != a, "all start");
    auto rows = co_await Dynamic::which_children(sup);
    require(rows.size() == 10, "all are listed");
    for (auto& row : rows) require(row.id.empty() && is_alive(row.pid), "no id");
    require(co_await Dynamic::count_children(sup) ==
                ChildCount{.specs = 10, .active = 10, .supervisors = 0, .workers = 10},
            "count");
  });
}

TEST_CASE("SUP-044 what a start function returns is passed on", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start_dynamic();
    auto custom = [](Result<StartedChild> result) {
      return child_started_by({}, Gives{result}, {.restart = Restart::temporary});
    };
    Pid pid = spawn(testing::wait_for_ever);
    auto ok = co_await Dynamic::start_child(sup, custom(StartedChild{pid, Term("extra")}));
    require(ok.ok() && ok.value().pid == pid && ok.value().info == Term("extra"), "{ok,p,info}");
    Pid other = spawn(testing::wait_for_ever);
    auto plain = co_await Dynamic::start_child(sup, custom(StartedChild{other, Term()}));
    require(plain.ok() && plain.value().pid == other && plain.value().info == Term(), "{ok,p}");
    require((co_await Dynamic::start_child(sup, custom(Ignored()))).ignored(), "ignore");
    auto error = co_await Dynamic::start_child(sup, custom(ExitReason::atom("bad")));
    require(error.error().is("bad"), "{error,R}");
    auto raised =
        co_await Dynamic::start_child(sup, child_started_by({}, []() -> Async<Result<Pid>> {
                                        throw std::runtime_error("raised");
                                        co_return Pid();
                                      }));
    require(raised.error().to_string().find("{{std::runtime_error,\"raised\"}") == 0, "raises");
    require((co_await Dynamic::which_children(sup)).size() == 2, "nothing else is kept");
    for (Pid each : {pid, other}) {
      require((co_await Dynamic::terminate_child(sup, each)).ok(), "it is a child like any other");
    }
  });
}

TEST_CASE("SUP-045 max_children counts children that wait for their restart",
          "[dynamic_supervisor]") {
  simulate(
      []() -> Async<void> {
        auto sup = co_await start_dynamic({.intensity = 1'000'000, .children_max = 2});
        auto trouble = std::make_shared<Trouble>();
        Pid a = co_await add(sup, nameless(Restart::permanent, {.trouble = trouble}));
        (void)co_await add(sup, nameless());
        auto third = co_await Dynamic::start_child(sup, nameless());
        require(third.error().is("max_children"), third.error().to_string());
        trouble->failures = 1'000'000;
        trouble->start_time = 1s;
        throw_in(a);
        co_await down_of(a);
        third = co_await Dynamic::start_child(sup, nameless());
        require(third.error().is("max_children"), "a restarts");
        auto count = co_await Dynamic::count_children(sup);
        require(count.specs == 2 && count.active == 1, "count");
        require((co_await Dynamic::terminate_child(sup, a)).error().is("not_found"),
                "no such process");
      },
      kFewRounds);
}

TEST_CASE("SUP-046 terminate_child of a dynamic supervisor", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start_dynamic();
    Pid pid = co_await add(sup, nameless(Restart::permanent));
    require((co_await Dynamic::terminate_child(sup, pid)).ok(), "ok");
    require(!is_alive(pid), "it is gone");
    require((co_await Dynamic::terminate_child(sup, pid)).error().is("not_found"), "again");
    require((co_await Dynamic::terminate_child(sup, self())).error().is("not_found"), "unknown");
    require((co_await Dynamic::count_children(sup)).specs == 0, "nothing is kept");
  });
}

TEST_CASE("SUP-047 a dynamic supervisor allows three restarts in five seconds",
          "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start_dynamic();
    auto spec = worker("a");
    (void)co_await add(sup, spec);
    co_await expect(1, "start a");
    for (int i = 0; i < 3; ++i) {
      crash("a");
      co_await expect(2, "stop a crashed,start a");
    }
    crash("a");
    require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "shutdown");
  });
}

TEST_CASE("SUP-048 stopping children one by one is linear in their number",
          "[dynamic_supervisor]") {
  // Work is counted in slices of the scheduler, which no busy machine disturbs, and in time of this
  // thread, which sees walks over all children too.
  auto slices_for = [](int children) {
    Simulator simulator(7);
    uint64_t slices = 0;
    simulator.spawn(
        [](int n) -> Async<void> {
          auto sup = co_await start_dynamic();
          std::vector<Pid> pids;
          for (int i = 0; i < n; ++i) pids.push_back(co_await add(sup, nameless()));
          for (Pid pid : pids) require((co_await Dynamic::terminate_child(sup, pid)).ok(), "ok");
          require(co_await stop_sup(sup.pid()) == ExitReason::shutdown(), "shutdown");
        },
        children);
    while (simulator.step()) ++slices;
    CHECK(simulator.process_count() == 0);
    return slices;
  };
  uint64_t few = slices_for(1000);
  uint64_t many = slices_for(10'000);
  CHECK(many < 12 * few);
  double short_time = seconds_for(200, 1), long_time = seconds_for(2000, 1);
  CHECK(long_time < 50 * short_time);
  short_time = seconds_for(200, 2), long_time = seconds_for(2000, 2);
  CHECK(long_time < 50 * short_time);
}

TEST_CASE("SUP-048 a supervisor whose children have all ended stops in linear time",
          "[supervisor]") {
  auto seconds = [](int children) {
    Simulator simulator(7);
    timespec before{}, after{};
    simulator.run(
        [](int n, timespec* begin) -> Async<void> {
          trap_exit(true);
          SupervisorSpec spec{.intensity = 0};
          for (int i = 0; i < n; ++i) {
            spec.children.push_back(child<Worker>("w" + std::to_string(i), {}));
          }
          auto sup = (co_await Supervisor::start_link(std::move(spec))).or_exit();
          auto rows = co_await Supervisor::which_children(sup);
          ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, begin);
          for (auto& row : rows) otp::exit(row.pid, ExitReason::kill());
          auto exit = co_await receive<ExitMessage>();
          require(exit.from == sup.pid() && exit.reason == ExitReason::shutdown(), "shutdown");
        },
        children, &before);
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    return static_cast<double>(after.tv_sec - before.tv_sec) +
           static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  };
  const double few = seconds(300), many = seconds(3000);
  INFO("300: " << few << " s, 3,000: " << many << " s");
  CHECK(many < 50 * few);
}
