#include "otp/supervision/dynamic_supervisor.h"

#include "otp/supervision/supervisor.h"
#include "otp/supervision/testing/pool_fixture.h"
#include "otp/supervision/tree.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

TEST_CASE("a dynamic supervisor restarts by the restart type", "[dynamic_supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start_dynamic({.intensity = 100});
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
      },
      kFewRounds);
}

TEST_CASE("a child is called by its pid, and has another one after a restart",
          "[dynamic_supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start_dynamic();
        ChildSpec spec = child<Worker>({}, {.number = 7}, {.name = "p"});
        StartedChild started = (co_await Dynamic::start_child(sup, spec)).or_exit();
        Server<Worker> first(started.pid);
        const Worker::Number ask{.set = 7};
        require(co_await otp::call(first, ask) == 7, "it answers");
        co_await otp::stop(first);  // with `normal`: a permanent child is started again
        while (!whereis("p")) co_await otp::yield();
        auto gone = co_await Dynamic::terminate_child(sup, started.pid);
        require(gone.error().is("not_found"), "by its former pid");
        (co_await Dynamic::terminate_child(sup, pid_of("p"))).or_exit();
        require((co_await Dynamic::count_children(sup)).specs == 0, "for good");
      },
      kFewRounds);
}

TEST_CASE("a dynamic supervisor stops all children at once", "[dynamic_supervisor]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    Duration took{};
    simulator.run(
        [](Simulator* clock, Duration* out) -> Async<void> {
          auto sup = co_await start_dynamic();
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

TEST_CASE("R-003 nothing is kept of children that ended", "[dynamic_supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start_dynamic();
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
        auto sup = co_await start_dynamic();
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

namespace {

// Takes a name by itself, and then fails.
class Grabber {
 public:
  struct Args {
    int* starts;
  };
  explicit Grabber(Args args) {
    const bool taken = register_name("ledger", self());
    if (!taken) throw std::runtime_error("the name is taken");
    if (++*args.starts % 2 == 1) throw std::runtime_error("odd");
  }
};

}  // namespace

TEST_CASE("R-001 a name that a failed constructor took by hand is free again",
          "[dynamic_supervisor]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        auto sup = (co_await Supervisor::start_link(SupervisorSpec{})).or_exit();
        int starts = 0;
        auto spec = child<Grabber>("ledger", [&starts] { return Grabber::Args{&starts}; });
        for (int round = 0; round < 10; ++round) {
          auto failed = co_await Supervisor::start_child(sup, spec);
          require(failed.error().to_string().find("odd") != std::string::npos, "the reason thrown");
          require(!whereis("ledger"), "the name is unknown");
          auto started = co_await Supervisor::start_child(sup, spec);
          require(started.ok() && pid_of("ledger") == started.value().pid, "the second works");
          require((co_await Supervisor::terminate_child(sup, "ledger")).ok(), "stop");
          require((co_await Supervisor::delete_child(sup, "ledger")).ok(), "delete");
        }
      },
      100);
}

TEST_CASE("R-001 a start that takes too long is killed and leaves its name free",
          "[dynamic_supervisor]") {
  simulate(
      []() -> Async<void> {
        auto sup = co_await start_dynamic();
        auto trouble = std::make_shared<Trouble>();
        trouble->start_time = 20ms;
        for (int round = 0; round < 20; ++round) {
          auto spec = worker("ledger", {.start_timeout = 10ms}, {.trouble = trouble});
          auto failed = co_await Dynamic::start_child(sup, spec);
          require(failed.error().is("timeout"), failed.error().to_string());
          require(!whereis("ledger"), "the name is free");
        }
        require((co_await Dynamic::count_children(sup)).specs == 0, "nothing is kept");
      },
      kFewRounds);
}

TEST_CASE("a tree is described over nested supervisors", "[tree]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        auto top =
            (co_await Supervisor::start_link(
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
        require(root.name == "top" && root.strategy == "rest_for_one" && root.pid == top.pid(),
                "root");
        require(root.children.size() == 4, "four children");
        const TreeNode &a = root.children[0], &s = root.children[1], &d = root.children[2];
        require(a.id == "a" && a.name == "a" && a.server == "Worker" && a.pid == pid_of("a"), "a");
        require(s.type == ChildType::supervisor && s.strategy == "one_for_one", "s");
        require(s.children.size() == 1 && s.children[0].id == "b", "b");
        require(s.children[0].shutdown == Shutdown(1s), "b's shutdown");
        require(d.name == "pool" && d.children.size() == 3 && d.children_left_out == 2, "d");
        require(root.children[3].state == TreeState::stopped && !root.children[3].pid, "z");
      },
      kFewRounds);
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
