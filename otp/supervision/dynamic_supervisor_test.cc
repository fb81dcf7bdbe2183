#include "otp/supervision/dynamic_supervisor.h"

#include "otp/supervision/testing/sup_fixture.h"
#include "otp/supervision/tree.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

using Dynamic = DynamicSupervisor;

Async<DynamicSupervisorRef> start(DynamicSupervisorSpec spec = {}) {
  trap_exit(true);
  co_return (co_await Dynamic::start_link(spec)).or_exit();
}
Async<Pid> add(DynamicSupervisorRef sup, ChildSpec spec) {
  auto started = co_await Dynamic::start_child(sup, std::move(spec));
  require(started.ok(), started.error().to_string());
  co_return started.value().pid;
}
ChildSpec nameless(Restart restart = Restart::temporary, Worker::Args args = {}) {
  return child<Worker>("same", std::move(args), {.restart = restart});
}
// A start function that gives back what it was made with.
struct Gives {
  Result<StartedChild> result;
  Async<Result<StartedChild>> operator()() const { co_return result; }
};
void throw_in(Pid pid) { (void)otp::cast(Server<Worker>(pid), Worker::Throw{}); }

}  // namespace

TEST_CASE("SUP-043 children of a dynamic supervisor have no ids", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start();
    Pid a = co_await add(sup, nameless());
    Pid b = co_await add(sup, nameless());
    require(a != b, "both start");
    auto rows = co_await Dynamic::which_children(sup);
    require(rows.size() == 2, "both are listed");
    for (auto& row : rows) require(row.id.empty() && (row.pid == a || row.pid == b), "no id");
    require(co_await Dynamic::count_children(sup) ==
                ChildCount{.specs = 2, .active = 2, .supervisors = 0, .workers = 2},
            "count");
  });
}

TEST_CASE("SUP-044 what a start function returns is passed on", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start();
    auto custom = [](Result<StartedChild> result) {
      return child_started_by({}, Gives{result}, {.restart = Restart::temporary});
    };
    Pid pid = spawn([]() -> Async<void> { co_await otp::sleep(infinity); });
    auto ok = co_await Dynamic::start_child(sup, custom(StartedChild{pid, Term("extra")}));
    require(ok.ok() && ok.value().pid == pid && ok.value().info == Term("extra"), "{ok,p,info}");
    require((co_await Dynamic::start_child(sup, custom(Ignored()))).ignored(), "ignore");
    auto error = co_await Dynamic::start_child(sup, custom(ExitReason::atom("bad")));
    require(error.error().is("bad"), "{error,R}");
    auto raised =
        co_await Dynamic::start_child(sup, child_started_by({}, []() -> Async<Result<Pid>> {
                                        throw std::runtime_error("raised");
                                        co_return Pid();
                                      }));
    require(raised.error().to_string().find("{{std::runtime_error,\"raised\"}") == 0, "raises");
    require((co_await Dynamic::which_children(sup)).size() == 1, "nothing else is kept");
  });
}

TEST_CASE("SUP-045 max_children counts children that wait for their restart",
          "[dynamic_supervisor]") {
  simulate([]() -> Async<void> {
    auto sup = co_await start({.intensity = 1'000'000, .children_max = 2});
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
    require((co_await Dynamic::terminate_child(sup, a)).error().is("not_found"), "no such process");
  });
}

TEST_CASE("SUP-046 terminate_child of a dynamic supervisor", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start();
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
    auto sup = co_await start();
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

TEST_CASE("a dynamic supervisor restarts by the restart type", "[dynamic_supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start({.intensity = 100});
    (void)co_await add(sup, worker("p"));
    (void)co_await add(sup, worker("r", {.restart = Restart::transient}));
    (void)co_await add(sup, worker("t", {.restart = Restart::temporary}));
    co_await expect(3, "start p,start r,start t");
    end("p", ExitReason::normal());
    co_await expect(2, "stop p normal,start p");
    crash("r");
    co_await expect(2, "stop r crashed,start r");
    end("r", ExitReason::normal());
    crash("t");
    (void)co_await events(2);
    while ((co_await Dynamic::count_children(sup)).specs != 1) co_await otp::yield();
    require(whereis("p") && !whereis("r") && !whereis("t"), "only p is left");
  });
}

TEST_CASE("a dynamic supervisor stops all children at once", "[dynamic_supervisor]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    Duration took{};
    simulator.run(
        [](Simulator* clock, Duration* out) -> Async<void> {
          auto sup = co_await start();
          std::vector<Reference> refs;
          for (int i = 0; i < 20; ++i) {
            Worker::Args args{.stop_time = 3s};
            if (i % 4 == 1) args = {.stubborn = true};  // killed after its 5 s
            auto spec = nameless(i % 2 ? Restart::permanent : Restart::temporary, args);
            if (i % 4 == 3) spec.shutdown = Shutdown::brutal_kill;
            refs.push_back(monitor(co_await add(sup, spec)));
          }
          Duration before = clock->now();
          require(co_await stop_sup(sup.pid()) == ExitReason::shutdown(), "shutdown");
          *out = clock->now() - before;
          for (size_t i = 0; i < refs.size(); ++i) {
            auto down = co_await receive<Down>(
                [ref = refs[i]](const Down& each) { return each.reference == ref; });
            require(down.reason.is(i % 2 ? "killed" : "shutdown"), down.reason.to_string());
          }
        },
        &simulator, &took);
    CHECK(took >= 5s);
    CHECK(took < 5100ms);
  }
}

TEST_CASE("SUP-048 stopping children one by one is linear in their number",
          "[dynamic_supervisor]") {
  // Work is counted in slices of the scheduler, which no busy machine disturbs.
  auto slices_for = [](int children) {
    Simulator simulator(7);
    uint64_t slices = 0;
    simulator.spawn(
        [](int n) -> Async<void> {
          auto sup = co_await start();
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
}

TEST_CASE("R-003 nothing is kept of children that ended", "[dynamic_supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start();
        for (Restart restart : {Restart::temporary, Restart::transient}) {
          for (int wave = 0; wave < 3; ++wave) {
            std::vector<Pid> pids;
            for (int i = 0; i < 100; ++i) pids.push_back(co_await add(sup, nameless(restart)));
            for (size_t i = 0; i < pids.size(); ++i) {
              if (i % 3 == 2 && restart == Restart::temporary) {
                otp::exit(pids[i], ExitReason::kill());
              } else {
                (void)otp::cast(Server<Worker>(pids[i]), Worker::End{ExitReason::normal()});
              }
            }
            for (Pid pid : pids) co_await down_of(pid);
          }
        }
        while ((co_await Dynamic::count_children(sup)).specs != 0) co_await otp::yield();
        require((co_await Dynamic::which_children(sup)).empty(), "none is listed");
      },
      3);
}

TEST_CASE("R-001 a failed start leaves its name free", "[dynamic_supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start();
        auto trouble = std::make_shared<Trouble>();
        for (int round = 0; round < 100; ++round) {
          trouble->failures = round % 2 == 0 ? 1 : 0;
          trouble->ignores = round % 2 == 0 ? 0 : 1;
          auto spec = worker("ledger", {.restart = Restart::temporary}, {.trouble = trouble});
          auto failed = co_await Dynamic::start_child(sup, spec);
          require(!failed.ok() && failed.ignored() == (round % 2 == 1), "the first start fails");
          require(!whereis("ledger"), "the name is unknown");
          Pid pid = co_await add(sup, spec);
          require(pid_of("ledger") == pid, "the second works");
          require((co_await Dynamic::terminate_child(sup, pid)).ok(), "stop");
          co_await expect(2, "start ledger,stop ledger shutdown");
        }
      },
      3);
}

TEST_CASE("R-001 a start that takes too long is killed and leaves its name free",
          "[dynamic_supervisor]") {
  simulate([]() -> Async<void> {
    auto sup = co_await start();
    auto trouble = std::make_shared<Trouble>();
    trouble->start_time = 20ms;
    for (int round = 0; round < 20; ++round) {
      auto spec = worker("ledger", {.start_timeout = 10ms}, {.trouble = trouble});
      auto failed = co_await Dynamic::start_child(sup, spec);
      require(failed.error().is("timeout"), failed.error().to_string());
      require(!whereis("ledger"), "the name is free");
    }
    require((co_await Dynamic::count_children(sup)).specs == 0, "nothing is kept");
  });
}

TEST_CASE("a tree is described over nested supervisors", "[tree]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    auto top = (co_await Supervisor::start_link(
                    {.strategy = Strategy::rest_for_one,
                     .children = {worker("a"),
                                  supervisor("s", {.children = {worker("b", {.shutdown = 1s})}}),
                                  dynamic_supervisor("d", {}, {.name = "pool"}), worker("z")}},
                    {.name = "top"}))
                   .or_exit();
    DynamicSupervisorRef pool{Name<DynamicSupervisor>("pool")};
    for (int i = 0; i < 5; ++i) (void)co_await add(pool, nameless());
    require((co_await Supervisor::terminate_child(top, "z")).ok(), "terminate");
    TreeNode root = co_await tree(top, {.children_max = 3});
    require(root.name == "top" && root.strategy == "rest_for_one" && root.pid == top.pid(), "root");
    require(root.children.size() == 4, "four children");
    const TreeNode &a = root.children[0], &s = root.children[1], &d = root.children[2];
    require(a.id == "a" && a.name == "a" && a.server == "Worker" && a.pid == pid_of("a"), "a");
    require(s.type == ChildType::supervisor && s.strategy == "one_for_one", "s");
    require(s.children.size() == 1 && s.children[0].id == "b", "b");
    require(s.children[0].shutdown == Shutdown(1s), "b's shutdown");
    require(d.name == "pool" && d.children.size() == 3 && d.children_left_out == 2, "d");
    require(root.children[3].state == TreeState::stopped && !root.children[3].pid, "z");
  });
}

TEST_CASE("a tree is described in bounded time although a supervisor is busy", "[tree]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    simulator.run(
        [](Simulator* clock) -> Async<void> {
          trap_exit(true);
          auto trouble = std::make_shared<Trouble>();
          auto top =
              (co_await Supervisor::start_link(
                   {.children = {worker("a"),
                                 supervisor(
                                     "s", {.intensity = 1'000'000,
                                           .children = {worker("b", {}, {.trouble = trouble})}})}}))
                  .or_exit();
          trouble->start_time = 60s;
          crash("b");
          co_await otp::sleep(1s);
          Duration before = clock->now();
          TreeNode root = co_await tree(top);
          require(clock->now() - before <= 2001ms, "in time");
          require(root.children[1].state == TreeState::no_answer, "s starts a child");
          require(root.children[0].state == TreeState::running, "a");
        },
        &simulator);
  }
}
