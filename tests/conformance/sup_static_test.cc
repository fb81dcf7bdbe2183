#include "otp/supervision/supervisor.h"

#include "otp/supervision/testing/sup_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

SupervisorSpec abc(Strategy strategy = Strategy::one_for_one, uint32_t intensity = 10) {
  return {.strategy = strategy,
          .intensity = intensity,
          .children = {worker("a"), worker("b"), worker("c")}};
}

}  // namespace

TEST_CASE("SUP-001 SUP-002 children start in order and stop in reverse", "[supervisor]") {
  // OTP: supervisor_SUITE:order_of_children/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start(abc());
    co_await expect(3, "start a,start b,start c");
    require(co_await stop_sup(sup.pid()) == ExitReason::shutdown(), "exits with shutdown");
    co_await expect(3, "stop c shutdown,stop b shutdown,stop a shutdown");
  });
}

TEST_CASE("SUP-001 a child starts when the init before it is over, and the last ends the start",
          "[supervisor]") {
  simulate([]() -> Async<void> {
    auto slow = std::make_shared<Trouble>();
    slow->start_time = 1s;
    const Duration before = now();
    auto sup = co_await start(
        {.children = {worker("a", {}, {.trouble = slow}), worker("b", {}, {.trouble = slow}),
                      worker("c", {}, {.trouble = slow})}});
    require(now() - before >= 3s, "start_link waits for all");
    co_await expect(6, "init a,start a,init b,start b,init c,start c");
    require(is_alive(sup.pid()), "lives");
  });
}

TEST_CASE("SUP-002 each child is gone before the next is told to stop", "[supervisor]") {
  simulate([]() -> Async<void> {
    auto sup = co_await start(
        {.children = {worker("a", {}, {.stop_time = 1s}), worker("b", {}, {.stop_time = 2s}),
                      worker("c", {}, {.stop_time = 1s})}});
    co_await expect(3, "start a,start b,start c");
    require(co_await stop_sup(sup.pid()) == ExitReason::shutdown(), "shutdown");
    co_await expect(6, "told c,stop c shutdown,told b,stop b shutdown,told a,stop a shutdown");
  });
}

TEST_CASE("SUP-003 a child that fails to start stops those before it", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_start_fail/1
  everywhere([]() -> Async<void> {
    trap_exit(true);
    auto trouble = std::make_shared<Trouble>();
    trouble->failures = 1;
    auto result = co_await Supervisor::start_link(
        {.children = {worker("a"), worker("b"), worker("c", {}, {.trouble = trouble}),
                      worker("d")}});
    require(!result.ok(), "started");
    std::string error = result.error().to_string();
    require(error.find("{shutdown,{failed_to_start_child,c,{{std::runtime_error,\"no luck\"}") == 0,
            error);
    co_await expect(4, "start a,start b,stop b shutdown,stop a shutdown");
    require(!co_await receive<Event>(after(0s)), "d was not started");
    require(!co_await receive<ExitMessage>(after(0s)), "no exit message of the failed start");
    require(!whereis("a") && !whereis("b") && !whereis("c"), "names are free");
  });
}

TEST_CASE("SUP-052 a failed start ends a caller that does not trap exits", "[supervisor]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid caller = spawn_link(
        [](Pid witness) -> Async<void> {
          auto trouble = std::make_shared<Trouble>();
          trouble->failures = 1;
          (void)co_await Supervisor::start_link(
              only(worker("c", {}, {.witness = witness, .trouble = trouble})));
          co_await otp::sleep(infinity);
        },
        self());
    auto exit = co_await receive<ExitMessage>();
    require(exit.from == caller, "whose exit");
    std::string reason = exit.reason.to_string();
    require(reason.find("{shutdown,{failed_to_start_child,c,{{std::runtime_error") == 0, reason);
    // One that traps gets the same as a result, and no signal.
    auto trouble = std::make_shared<Trouble>();
    trouble->failures = 1;
    auto result = co_await Supervisor::start_link(only(worker("c", {}, {.trouble = trouble})));
    require(!result.ok(), "started");
    require(result.error().to_string().find("{shutdown,{failed_to_start_child,c,") == 0, "result");
    require(!co_await receive<ExitMessage>(after(0s)), "no signal");
  });
}

TEST_CASE("SUP-004 one_for_one restarts only the child that ended", "[supervisor]") {
  // OTP: supervisor_SUITE:one_for_one/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start(abc());
    co_await expect(3, "start a,start b,start c");
    Pid a = pid_of("a"), b = pid_of("b"), c = pid_of("c");
    crash("a");
    co_await expect(2, "stop a crashed,start a");
    require(pid_of("a") != a && is_alive(pid_of("a")), "a is another process");
    require(pid_of("b") == b && pid_of("c") == c, "the others are the same");
    require(co_await listing(sup) == "c running,b running,a running", "order is kept");
  });
}

TEST_CASE("SUP-005 one_for_all restarts all, stopping in reverse", "[supervisor]") {
  // OTP: supervisor_SUITE:one_for_all/1
  everywhere([]() -> Async<void> {
    co_await start(abc(Strategy::one_for_all));
    co_await expect(3, "start a,start b,start c");
    crash("b");
    co_await expect(6, "stop b crashed,stop c shutdown,stop a shutdown,start a,start b,start c");
  });
}

TEST_CASE("SUP-006 rest_for_one restarts the child and those after it", "[supervisor]") {
  // OTP: supervisor_SUITE:rest_for_one/1
  everywhere([]() -> Async<void> {
    auto spec = abc(Strategy::rest_for_one);
    spec.children.push_back(worker("d"));
    auto sup = co_await start(std::move(spec));
    co_await expect(4, "start a,start b,start c,start d");
    Pid a = pid_of("a");
    crash("b");
    co_await expect(6, "stop b crashed,stop d shutdown,stop c shutdown,start b,start c,start d");
    require(pid_of("a") == a, "a is the same");
    require(co_await listing(sup) == "d running,c running,b running,a running", "order");
  });
}

TEST_CASE("SUP-007 a permanent child is restarted whatever its reason", "[supervisor]") {
  // OTP: supervisor_SUITE:permanent_normal/1, permanent_shutdown/1, permanent_abnormal/1
  everywhere([]() -> Async<void> {
    co_await start(only(worker("a")));
    co_await expect(1, "start a");
    for (ExitReason reason : {ExitReason::normal(), ExitReason::shutdown(),
                              ExitReason::shutdown(Term(1)), ExitReason::atom("bad")}) {
      end("a", reason);
      co_await expect(2, "stop a " + reason.to_string() + ",start a");
    }
  });
}

TEST_CASE("SUP-008 a transient child is restarted after an abnormal end only", "[supervisor]") {
  // OTP: supervisor_SUITE:transient_normal/1, transient_shutdown/1, transient_abnormal/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a", {.restart = Restart::transient})));
    co_await expect(1, "start a");
    for (ExitReason reason :
         {ExitReason::normal(), ExitReason::shutdown(), ExitReason::shutdown(Term(1))}) {
      Pid pid = pid_of("a");
      end("a", reason);
      co_await down_of(pid);
      co_await expect(1, "stop a " + reason.to_string());
      require(co_await listing(sup) == "a stopped", "kept without a process");
      require((co_await Supervisor::restart_child(sup, "a")).ok(), "restart_child");
      co_await expect(1, "start a");
    }
    end("a", ExitReason::atom("bad"));
    co_await expect(2, "stop a bad,start a");
    otp::exit(pid_of("a"), ExitReason::kill());
    co_await expect(1, "start a");
  });
}

TEST_CASE("SUP-009 a temporary child is never restarted and leaves nothing", "[supervisor]") {
  // OTP: supervisor_SUITE:temporary_normal/1, temporary_shutdown/1, temporary_abnormal/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start({});
    for (ExitReason reason : {ExitReason::normal(), ExitReason::shutdown(),
                              ExitReason::shutdown(Term(1)), ExitReason::atom("bad")}) {
      auto started =
          co_await Supervisor::start_child(sup, worker("a", {.restart = Restart::temporary}));
      require(started.ok(), "starts under the same id again");
      Pid pid = started.value().pid;
      end("a", reason);
      co_await down_of(pid);
      co_await expect(2, "start a,stop a " + reason.to_string());
      require(co_await listing(sup) == "", "no longer listed");
    }
    auto killed =
        co_await Supervisor::start_child(sup, worker("a", {.restart = Restart::temporary}));
    otp::exit(killed.value().pid, ExitReason::kill());
    co_await down_of(killed.value().pid);
    co_await expect(1, "start a");
    require(co_await listing(sup) == "", "killed: no longer listed");
    require(!co_await receive<Event>(after(0s)), "and not restarted");
  });
}

TEST_CASE("SUP-010 one restart too many ends the supervisor with shutdown", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start(abc(Strategy::one_for_one, 2));
    co_await expect(3, "start a,start b,start c");
    crash("b");
    co_await expect(2, "stop b crashed,start b");
    crash("b");
    co_await expect(2, "stop b crashed,start b");
    crash("b");
    co_await expect(3, "stop b crashed,stop c shutdown,stop a shutdown");
    auto exit = co_await receive<ExitMessage>();
    require(exit.from == sup.pid() && exit.reason == ExitReason::shutdown(), "shutdown");
  });
}

TEST_CASE("SUP-010 a restart whose start fails counts like any other", "[supervisor]") {
  // OTP: supervisor_SUITE:one_for_one_escalation/1
  everywhere(
      []() -> Async<void> {
        auto trouble = std::make_shared<Trouble>();
        auto sup = co_await start(only(worker("a", {}, {.trouble = trouble}), 2));
        co_await expect(1, "start a");
        {
          std::lock_guard lock(trouble->mutex);
          trouble->failures = 1000;
        }
        crash("a");
        require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "shutdown");
        co_await expect(1, "stop a crashed");
        std::lock_guard lock(trouble->mutex);
        require(trouble->starts == 3, std::to_string(trouble->starts) + " starts");
      },
      kFewRounds);
}

TEST_CASE("SUP-011 with intensity 0 the first restartable end is the last", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a"), 0));
    crash("a");
    require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "shutdown");
    co_await expect(2, "start a,stop a crashed");
  });
}

TEST_CASE("SUP-012 R-007 restarts older than the period do not count", "[supervisor]") {
  // OTP: supervisor_SUITE:multiple_restarts/1
  simulate(
      []() -> Async<void> {
        auto sup = co_await start({.intensity = 1, .period = 1s, .children = {worker("a")}});
        co_await expect(1, "start a");
        for (int i = 0; i < 4; ++i) {
          co_await otp::sleep(2100ms);
          crash("a");
          co_await expect(2, "stop a crashed,start a");
        }
        crash("a");
        require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "two within the period");
      },
      kFewRounds);
}

TEST_CASE("SUP-013 all children share one restart counter", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start(abc(Strategy::one_for_one, 2));
    co_await expect(3, "start a,start b,start c");
    for (std::string id : {"a", "b"}) {
      crash(id);
      co_await expect(2, "stop " + id + " crashed,start " + id);
    }
    crash("a");
    require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "the third");
  });
}

TEST_CASE("SUP-014 SUP-039 defaults are OTP's", "[supervisor]") {
  SupervisorSpec flags;
  CHECK(flags.strategy == Strategy::one_for_one);
  CHECK(flags.intensity == 1);
  CHECK(flags.period == 5s);
  CHECK(flags.auto_shutdown == AutoShutdown::never);
  everywhere([]() -> Async<void> {
    auto sup = co_await start({.children = {worker("w"), supervisor("s", {})}});
    ChildSpec w = (co_await Supervisor::get_child_spec(sup, "w")).value();
    require(w.restart == Restart::permanent && w.type == ChildType::worker && !w.significant &&
                w.shutdown_or_default() == Shutdown(5s),
            "worker");
    ChildSpec s = (co_await Supervisor::get_child_spec(sup, "s")).value();
    require(s.type == ChildType::supervisor && s.shutdown_or_default().is_infinity(), "supervisor");
  });
}

TEST_CASE("SUP-015 between two attempts the supervisor serves requests", "[supervisor]") {
  // OTP: supervisor_SUITE:hanging_restart_loop/1
  simulate(
      []() -> Async<void> {
        auto trouble = std::make_shared<Trouble>();
        auto sup =
            co_await start({.intensity = 1000,
                            .period = 3600s,
                            .children = {worker("a", {}, {.trouble = trouble}), worker("b")}});
        co_await expect(2, "start a,start b");
        trouble->failures = 1'000'000;
        trouble->start_time = 2s;
        crash("a");
        co_await expect(1, "stop a crashed");
        co_await otp::sleep(5s);
        require(co_await listing(sup) == "b running,a restarting", "listed as restarting");
        auto count = co_await Supervisor::count_children(sup);
        require(count == ChildCount{.specs = 2, .active = 1, .supervisors = 0, .workers = 2},
                "not active");
        auto restarting = co_await Supervisor::restart_child(sup, "a");
        require(restarting.error().is("restarting"), restarting.error().to_string());
        require((co_await Supervisor::delete_child(sup, "a")).error().is("restarting"), "delete");
        require((co_await Supervisor::terminate_child(sup, "a")).ok(), "terminate");
        int starts = trouble->starts;
        co_await otp::sleep(60s);
        require(trouble->starts == starts, "no further attempt");
        require(co_await listing(sup) == "b running,a stopped", "stopped");
      },
      kFewRounds);
}

TEST_CASE("SUP-016 a supervisor that gives up is restarted with its specification",
          "[supervisor]") {
  // OTP: supervisor_SUITE:tree/1
  everywhere([]() -> Async<void> {
    auto top = co_await start(
        {.intensity = 1, .children = {supervisor("s", only(worker("a"), 1), {.name = "s"})}});
    co_await expect(1, "start a");
    SupervisorRef s{Name<Supervisor>("s")};
    Pid first = s.pid();
    require((co_await Supervisor::start_child(s, worker("more"))).ok(), "start_child");
    co_await expect(1, "start more");
    crash("a");
    co_await expect(2, "stop a crashed,start a");
    crash("a");
    co_await expect(3, "stop a crashed,stop more shutdown,start a");
    require((co_await Supervisor::count_children(top)).supervisors == 1, "top lives");
    require(pid_of("s") != first, "another process");
    require(co_await listing(s) == "a running", "what was added is gone");
  });
}

TEST_CASE("SUP-017 a child that stops within its time is not killed", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_stop_timeout/1
  simulate([]() -> Async<void> {
    auto sup = co_await start(only(worker("a", {.shutdown = 1000ms}, {.stop_time = 300ms})));
    auto [a, reference] = std::pair(pid_of("a"), monitor(pid_of("a")));
    (void)reference;
    const Duration before = now();
    require((co_await Supervisor::terminate_child(sup, "a")).ok(), "ok");
    require(now() - before >= 300ms && now() - before < 1000ms, "waits for it, no longer");
    auto down = co_await receive<Down>();
    require(down.pid == a && down.reason == ExitReason::shutdown(), down.reason.to_string());
  });
}

TEST_CASE("SUP-018 a child that does not stop in time is killed", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_stop_timeout/1
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    Duration before{}, passed{};
    simulator.run(
        [](Simulator* clock, Duration* at, Duration* took) -> Async<void> {
          auto sup = co_await start(
              {.children = {worker("a", {.shutdown = 1000ms}, {.stubborn = true}), worker("b")}});
          (void)monitor(pid_of("a"));
          *at = clock->now();
          require((co_await Supervisor::terminate_child(sup, "a")).ok(), "ok");
          *took = clock->now() - *at;
          auto down = co_await receive<Down>();
          require(down.reason.is("killed"), down.reason.to_string());
          require(co_await listing(sup) == "b running,a stopped", "the supervisor goes on");
        },
        &simulator, &before, &passed);
    CHECK(passed >= 1000ms);
    CHECK(passed < 1010ms);
  }
}

TEST_CASE("SUP-019 brutal_kill kills at once", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_stop_brutal_kill/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a", {.shutdown = Shutdown::brutal_kill})));
    co_await expect(1, "start a");
    (void)monitor(pid_of("a"));
    require((co_await Supervisor::terminate_child(sup, "a")).ok(), "ok");
    require((co_await receive<Down>()).reason.is("killed"), "killed");
    require(!co_await receive<Event>(after(0s)), "terminate did not run");
    // Nor is one that does not trap asked first: `shutdown` would be its reason.
    auto plain = worker("b", {.shutdown = Shutdown::brutal_kill}, {.trap = false});
    require((co_await Supervisor::start_child(sup, std::move(plain))).ok(), "b");
    co_await expect(1, "start b");
    (void)monitor(pid_of("b"));
    require((co_await Supervisor::terminate_child(sup, "b")).ok(), "ok");
    require((co_await receive<Down>()).reason.is("killed"), "killed");
  });
}

TEST_CASE("SUP-020 shutdown infinity waits without limit", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_stop_infinity/1
  simulate([]() -> Async<void> {
    auto sup = co_await start(only(worker("a", {.shutdown = infinity}, {.stop_time = 7200s})));
    (void)monitor(pid_of("a"));
    const Duration before = now();
    require((co_await Supervisor::terminate_child(sup, "a")).ok(), "ok");
    require(now() - before >= 7200s, "two hours");
    require((co_await receive<Down>()).reason == ExitReason::shutdown(), "not killed");
  });
}

TEST_CASE("SUP-021 children that end by themselves do not disturb a shutdown", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_stop_race/1
  everywhere([]() -> Async<void> {
    std::vector<ChildSpec> children;
    std::vector<ExitReason> reasons{ExitReason::normal(), ExitReason::shutdown(),
                                    ExitReason::shutdown(Term(7)), ExitReason::atom("bad")};
    for (int i = 0; i < 8; ++i) children.push_back(worker("w" + std::to_string(i)));
    auto sup = co_await start({.intensity = 100, .children = children});
    co_await events(8);
    std::vector<Reference> refs;
    for (int i = 0; i < 8; ++i) refs.push_back(monitor(pid_of("w" + std::to_string(i))));
    for (int i = 7; i >= 0; --i) {
      end("w" + std::to_string(i), reasons[static_cast<size_t>(i) % 4]);
      if (i == 3) otp::exit(sup.pid(), ExitReason::shutdown());
    }
    require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "shutdown completes");
    for (size_t i = 0; i < 8; ++i) {
      auto down = co_await receive<Down>(
          [ref = refs[i]](const Down& each) { return each.reference == ref; });
      require(down.reason == reasons[i % 4] || down.reason == ExitReason::shutdown(),
              "own reason: " + down.reason.to_string());
    }
    for (int i = 0; i < 8; ++i) require(!whereis("w" + std::to_string(i)), "nothing left");
  });
}

TEST_CASE("SUP-022 a supervisor exits with its parent's reason", "[supervisor]") {
  everywhere([]() -> Async<void> {
    for (ExitReason reason : {ExitReason::normal(), ExitReason::atom("bad")}) {
      auto sup = co_await start(abc());
      co_await expect(3, "start a,start b,start c");
      require(co_await stop_sup(sup.pid(), reason) == reason, reason.to_string());
      co_await expect(3, "stop c shutdown,stop b shutdown,stop a shutdown");
    }
    // Its parent dies.
    Pid witness = self();
    auto [parent, ref] = spawn_monitor(
        [](Pid to) -> Async<void> {
          auto sup = co_await start(only(worker("a", {}, {.witness = to})));
          (void)otp::send(to, sup.pid());
          co_await otp::sleep(infinity);
        },
        witness);
    (void)ref;
    Pid sup = co_await receive<Pid>();
    otp::exit(parent, ExitReason::kill());
    require((co_await down_of(sup)).is("killed"), "the parent's reason");
    co_await expect(2, "start a,stop a shutdown");
  });
}

TEST_CASE("SUP-023 a killed supervisor has no orderly shutdown", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start({.children = {worker("a"), worker("b", {}, {.trap = false})}});
    co_await expect(2, "start a,start b");
    Reference b = monitor(pid_of("b"));
    otp::exit(sup.pid(), ExitReason::kill());
    require((co_await down_of(sup.pid())).is("killed"), "killed");
    co_await expect(1, "stop a killed");
    auto down = co_await receive<Down>([b](const Down& each) { return each.reference == b; });
    require(down.reason.is("killed"), "b gets the signal");
  });
}

TEST_CASE("SUP-033 a temporary child of one_for_all ends alone", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup =
        co_await start({.strategy = Strategy::one_for_all,
                        .intensity = 5,
                        .children = {worker("a"), worker("t", {.restart = Restart::temporary})}});
    co_await expect(2, "start a,start t");
    Pid a = pid_of("a"), t = pid_of("t");
    crash("t");
    co_await down_of(t);
    require(co_await listing(sup) == "a running" && pid_of("a") == a, "nothing happens to a");
    require(
        (co_await Supervisor::start_child(sup, worker("t", {.restart = Restart::temporary}))).ok(),
        "again");
    co_await expect(2, "stop t crashed,start t");
    crash("a");
    co_await expect(3, "stop a crashed,stop t shutdown,start a");
    require(co_await listing(sup) == "a running", "it is stopped with the others, for good");
  });
}

TEST_CASE("SUP-034 a restarted child gets its arguments and nothing else", "[supervisor]") {
  everywhere([]() -> Async<void> {
    co_await start(only(worker("a", {}, {.number = 42})));
    co_await expect(1, "start a");
    Server<Worker> a{Name<Worker>("a")};
    for (int i = 0; i < 3; ++i) {
      require(co_await otp::call(a, Worker::Number{.set = 7}) == 42, "as specified");
      require(co_await otp::call(a, Worker::Number{.set = 7}) == 7, "its own state");
      crash("a");
      co_await expect(2, "stop a crashed,start a");
    }
  });
}

TEST_CASE("SUP-035 every restart can register its name", "[supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start(only(worker("a"), 1000));
        co_await expect(1, "start a");
        for (int i = 0; i < 1000; ++i) {
          crash("a");
          co_await expect(2, "stop a crashed,start a");
        }
        require(is_alive(sup.pid()), "never already registered");
      },
      2);
}

TEST_CASE("SUP-036 unknown messages and exits of strangers are survived", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start(abc());
    co_await expect(3, "start a,start b,start c");
    (void)otp::send(sup.pid(), Event{"hello"});
    auto [stranger, ref] = spawn_monitor(
        [](Pid to) -> Async<void> {
          link(to);
          otp::exit(ExitReason::atom("bad"));
          co_return;
        },
        sup.pid());
    (void)ref;
    co_await down_of(stranger);
    Pid a = pid_of("a");
    // A child that sends a signal and lives has not ended.
    auto forged = spawn([](Pid to) { otp::exit(to, ExitReason::atom("bad")); }, sup.pid());
    co_await down_of(forged);
    require(co_await listing(sup) == "c running,b running,a running", "goes on");
    require(pid_of("a") == a, "nobody was restarted");
  });
}
