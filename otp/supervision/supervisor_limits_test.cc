#include "otp/supervision/supervisor.h"

#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/testing/sup_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

SupervisorSpec only(ChildSpec spec, uint32_t intensity = 10) {
  return {.intensity = intensity, .children = {std::move(spec)}};
}
Async<SupervisorRef> start(SupervisorSpec spec) {
  trap_exit(true);
  co_return (co_await Supervisor::start_link(std::move(spec))).or_exit();
}
// Starts what is wrong, and a good child before it that must not start.
Async<std::string> refused(std::vector<ChildSpec> specs, SupervisorSpec flags = {}) {
  trap_exit(true);
  flags.children = std::move(specs);
  flags.children.insert(flags.children.begin(), worker("good"));
  auto result = co_await Supervisor::start_link(std::move(flags));
  require(!result.ok(), "started");
  require(!co_await receive<Event>(after(0s)), "nothing is started");
  co_return result.error().to_string();
}
ChildSpec changed(void (*change)(ChildSpec&)) {
  ChildSpec spec = worker("x");
  change(spec);
  return spec;
}
template <class F>
void with_records(F test, Records& records) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SystemOptions options;
    options.log = &records;
    Simulator simulator(seed, options);
    simulator.run(test);
  }
}

}  // namespace

TEST_CASE("SUP-037 a bad specification is an error that names the field", "[supervisor]") {
  // OTP: supervisor_SUITE:child_specs_map/1, sup_start_map_faulty_specs/1
  everywhere([]() -> Async<void> {
    struct Case {
      ChildSpec spec;
      std::string why;
    };
    std::vector<Case> cases{
        {changed([](ChildSpec& s) { s.id.clear(); }), "missing_id"},
        {changed([](ChildSpec& s) { s.start = nullptr; }), "missing_start"},
        {changed([](ChildSpec& s) { s.restart = Restart(9); }), "{invalid_restart_type,9}"},
        {changed([](ChildSpec& s) { s.shutdown = -1s; }), "{invalid_shutdown,negative}"},
        {changed([](ChildSpec& s) { s.type = ChildType(7); }), "{invalid_child_type,7}"},
        {changed([](ChildSpec& s) { s.backoff.min = -1s; }), "{invalid_backoff_min,"},
        {changed([](ChildSpec& s) { s.mailbox.on_full = OnFull(5); }), "{invalid_on_full,5}"},
    };
    auto sup = co_await start({});
    for (auto& each : cases) {
      std::string error = co_await refused({each.spec});
      require(error.find("{start_spec,") == 0 && error.find(each.why) != std::string::npos, error);
      auto added = co_await Supervisor::start_child(sup, each.spec);
      require(added.error().to_string().find(each.why) == 0, added.error().to_string());
      require(check_child_specs({each.spec}).has_value(), "check");
    }
    std::string twice = co_await refused({worker("x"), worker("x")});
    require(twice == "{start_spec,{duplicate_child_name,x}}", twice);
    require((co_await Supervisor::which_children(sup)).empty(), "nothing is added");
    require(!check_child_specs({worker("x"), worker("y")}), "good ones pass");
  });
}

TEST_CASE("SUP-038 bad flags are refused", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_flags/1
  everywhere([]() -> Async<void> {
    std::string strategy = co_await refused({}, {.strategy = Strategy(8)});
    require(strategy == "{supervisor_data,{invalid_strategy,8}}", strategy);
    std::string period = co_await refused({}, {.period = Duration(0)});
    require(period == "{supervisor_data,{invalid_period,0}}", period);
    auto dynamic = co_await DynamicSupervisor::start_link({.period = Duration(0)});
    require(dynamic.error().to_string() == "{supervisor_data,{invalid_period,0}}", "dynamic");
  });
}

TEST_CASE("SUP-040 any_significant: the end of a significant child stops the supervisor",
          "[supervisor]") {
  // OTP: supervisor_SUITE:significant_temporary/1
  everywhere([]() -> Async<void> {
    for (ExitReason reason : {ExitReason::normal(), ExitReason::atom("bad")}) {
      auto sup = co_await start(
          {.auto_shutdown = AutoShutdown::any_significant,
           .children = {worker("a"),
                        worker("t", {.restart = Restart::temporary, .significant = true}),
                        worker("z")}});
      co_await expect(3, "start a,start t,start z");
      end("t", reason);
      co_await expect(3, "stop t " + reason.to_string() + ",stop z shutdown,stop a shutdown");
      require(co_await down_of(sup.pid()) != ExitReason::normal(), "gone");
      auto exit = co_await receive<ExitMessage>();
      require(exit.reason == ExitReason::shutdown(), "with shutdown");
    }
    // One that is told to stop by a client does not count.
    auto sup = co_await start(
        {.auto_shutdown = AutoShutdown::any_significant,
         .children = {worker("t", {.restart = Restart::transient, .significant = true})}});
    require((co_await Supervisor::terminate_child(sup, "t")).ok(), "terminate");
    require(co_await listing(sup) == "t stopped", "lives");
  });
}

TEST_CASE("SUP-041 all_significant: the last significant child stops the supervisor",
          "[supervisor]") {
  // OTP: supervisor_SUITE:significant_transient/1
  everywhere([]() -> Async<void> {
    auto significant = [](std::string id) {
      return worker(id, {.restart = Restart::transient, .significant = true});
    };
    auto sup = co_await start({.intensity = 5,
                               .auto_shutdown = AutoShutdown::all_significant,
                               .children = {worker("a"), significant("s"), significant("t")}});
    co_await expect(3, "start a,start s,start t");
    end("s", ExitReason::normal());
    co_await expect(1, "stop s normal");
    crash("t");
    co_await expect(2, "stop t crashed,start t");
    require(co_await listing(sup) == "t running,s stopped,a running", "survives");
    end("t", ExitReason::shutdown());
    co_await expect(2, "stop t shutdown,stop a shutdown");
    auto exit = co_await receive<ExitMessage>();
    require(exit.from == sup.pid() && exit.reason == ExitReason::shutdown(), "shutdown");
  });
}

TEST_CASE("SUP-042 significant children need auto_shutdown and must not be permanent",
          "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto never = worker("x", {.restart = Restart::transient, .significant = true});
    auto permanent = worker("x", {.significant = true});
    std::string why = co_await refused({never});
    require(
        why.find("bad_combination,[{auto_shutdown,never},{significant,true}]") != std::string::npos,
        why);
    why = co_await refused({permanent}, {.auto_shutdown = AutoShutdown::any_significant});
    require(
        why.find("bad_combination,[{restart,permanent},{significant,true}]") != std::string::npos,
        why);
  });
}

TEST_CASE("SUP-053 an init function may ignore, fail, and is run again by a restart",
          "[supervisor]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    auto ignored = co_await Supervisor::start_link(
        SupervisorInit([]() -> Result<SupervisorSpec> { return Ignored(); }));
    require(ignored.ignored(), "ignore");
    auto failed = co_await Supervisor::start_link(
        SupervisorInit([]() -> Result<SupervisorSpec> { return ExitReason::atom("no_config"); }));
    require(failed.error().is("no_config"), "error");
    require(!co_await receive<ExitMessage>(after(0s)), "nothing is left");
  });
}

TEST_CASE("SYS-009 the end of a child is reported if it is restarted or abnormal", "[supervisor]") {
  Records records;
  with_records(
      []() -> Async<void> {
        co_await start(
            {.intensity = 10,
             .children = {worker("p"), worker("q"), worker("t", {.restart = Restart::transient})}});
        (void)co_await events(3);
        crash("p");
        (void)co_await events(2);
        end("q", ExitReason::normal());
        (void)co_await events(2);
        Pid t = pid_of("t");
        end("t", ExitReason::normal());
        co_await down_of(t);
      },
      records);
  INFO(records.all());
  CHECK(records.count("child_terminated, child p ") == 10);
  CHECK(records.count("child_terminated, child q ") == 10);
  CHECK(records.count("child_terminated, child t ") == 0);
  CHECK(records.count("boom") >= 10);
}

TEST_CASE("SYS-010 giving up and late children are reported with id and pid", "[supervisor]") {
  Records records;
  with_records(
      []() -> Async<void> {
        auto sup = co_await start(
            {.intensity = 0,
             .children = {worker("late", {.shutdown = 1s}, {.stubborn = true}), worker("weak")}});
        (void)co_await events(2);
        crash("weak");
        require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "shutdown");
      },
      records);
  INFO(records.all());
  CHECK(records.count("shutdown, child weak <0.") == 10);
  CHECK(records.count("reached_max_restart_intensity") == 10);
  CHECK(records.count("shutdown_error, child late <0.") == 10);
}

TEST_CASE("R-002 a restart that fails is tried again and counted", "[supervisor]") {
  simulate([]() -> Async<void> {
    auto trouble = std::make_shared<Trouble>();
    auto sup =
        co_await start({.intensity = 3,
                        .children = {worker("steady"), worker("flaky", {}, {.trouble = trouble})}});
    co_await expect(2, "start steady,start flaky");
    Pid steady = pid_of("steady");
    trouble->failures = 2;
    crash("flaky");
    co_await expect(2, "stop flaky crashed,start flaky");
    require(pid_of("steady") == steady, "steady keeps its pid");
    // (c) the window forgets: three restarts more.
    co_await otp::sleep(6s);
    for (int i = 0; i < 3; ++i) {
      crash("flaky");
      co_await expect(2, "stop flaky crashed,start flaky");
    }
    crash("flaky");
    co_await expect(2, "stop flaky crashed,stop steady shutdown");
    require(!is_alive(sup.pid()) || co_await down_of(sup.pid()) == ExitReason::shutdown(), "ends");
  });
}

TEST_CASE("R-002 a child that never starts again ends its supervisor", "[supervisor]") {
  everywhere([]() -> Async<void> {
    for (Strategy strategy :
         {Strategy::one_for_one, Strategy::rest_for_one, Strategy::one_for_all}) {
      auto trouble = std::make_shared<Trouble>();
      auto sup = co_await start(
          {.strategy = strategy,
           .intensity = 3,
           .children = {worker("flaky", {}, {.trouble = trouble}), worker("steady")}});
      co_await expect(2, "start flaky,start steady");
      trouble->failures = 1'000'000;
      crash("flaky");
      co_await expect(2, "stop flaky crashed,stop steady shutdown");
      auto exit = co_await receive<ExitMessage>();
      require(exit.from == sup.pid() && exit.reason == ExitReason::shutdown(), "shutdown");
      require(trouble->starts == 4, "three attempts, the fourth is one too many");
    }
  });
}

TEST_CASE("a failed restart in a group leaves those after it for the next attempt",
          "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto trouble = std::make_shared<Trouble>();
    co_await start({.strategy = Strategy::one_for_all,
                    .intensity = 10,
                    .children = {worker("a"), worker("b", {}, {.trouble = trouble}), worker("c")}});
    co_await expect(3, "start a,start b,start c");
    trouble->failures = 1;
    crash("c");
    co_await expect(7,
                    "stop c crashed,stop b shutdown,stop a shutdown,start a,"
                    "stop a shutdown,start a,start b");
    co_await expect(1, "start c");
  });
}

TEST_CASE("backoff: pauses grow between restarts and begin anew after a long run", "[supervisor]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    simulator.run(
        [](Simulator* clock) -> Async<void> {
          auto sup =
              co_await start(only(worker("a", {.backoff = {.min = 100ms, .max = 1s}}), 1000));
          co_await expect(1, "start a");
          auto pause = [](Simulator* at) -> Async<Duration> {
            Duration before = at->now();
            crash("a");
            co_await expect(2, "stop a crashed,start a");
            co_return at->now() - before;
          };
          for (auto wanted : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
            Duration got = co_await pause(clock);
            require(got >= wanted && got < wanted + 5ms, "pause " + std::to_string(got.count()));
          }
          co_await otp::sleep(1500ms);
          require(co_await pause(clock) < 105ms, "a run longer than max begins anew");
          // A client may cut the pause short.
          crash("a");
          co_await expect(1, "stop a crashed");
          require(co_await listing(sup) == "a restarting", "listed");
          require((co_await Supervisor::terminate_child(sup, "a")).ok(), "terminate");
          require((co_await Supervisor::restart_child(sup, "a")).ok(), "restart");
          co_await expect(1, "start a");
          co_await otp::sleep(60s);
          require(!co_await receive<Event>(after(0s)), "the planned restart is void");
        },
        &simulator);
  }
}

TEST_CASE("backoff does not weaken the intensity", "[supervisor]") {
  simulate([]() -> Async<void> {
    auto sup = co_await start({.intensity = 2,
                               .period = 3600s,
                               .children = {worker("a", {.backoff = {.min = 1s, .max = 8s}})}});
    co_await expect(1, "start a");
    for (int i = 0; i < 2; ++i) {
      crash("a");
      co_await expect(2, "stop a crashed,start a");
    }
    crash("a");
    require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "the third");
  });
}

TEST_CASE("a naughty child that unlinks itself is stopped all the same", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start({.children = {worker("a"), worker("b")}});
    co_await expect(2, "start a,start b");
    for (std::string id : {"a", "b"}) {
      Server<Worker> server{Name<Worker>(id)};
      (void)otp::cast(server, Worker::UnlinkParent{sup.pid()});
      (void)co_await otp::call(server, Worker::Number{});
    }
    Pid b = pid_of("b");
    require((co_await Supervisor::terminate_child(sup, "b")).ok(), "no hang");
    require(!is_alive(b), "gone");
    require(co_await stop_sup(sup.pid()) == ExitReason::shutdown(), "the other one too");
    co_await expect(2, "stop b shutdown,stop a shutdown");
  });
}

TEST_CASE("plain processes are supervised and acknowledge their start", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start({});
    auto ready = plain_child(
        "ready", {.name = "ready"},
        [](InitAck ack, int n) -> Async<void> {
          co_await otp::yield();
          require(n == 7, "arguments");
          ack.ready();
          co_await otp::sleep(infinity);
        },
        7);
    auto first = co_await Supervisor::start_child(sup, ready);
    require(first.ok() && first.value().pid == pid_of("ready"), "started");
    otp::exit(pid_of("ready"), ExitReason::kill());
    co_await down_of(first.value().pid);
    require(co_await listing(sup) == "ready running", "restarted with its arguments");

    auto taken = co_await Supervisor::start_child(
        sup, plain_child("taken", {.name = "ready"}, []() -> Async<void> { co_return; }));
    require(taken.error() == ExitReason::tagged("already_started", Term(pid_of("ready"))), "name");
    auto fails = co_await Supervisor::start_child(
        sup, plain_child("fails", {}, [](InitAck ack) -> Async<void> {
          co_await otp::yield();
          ack.fail(ExitReason::atom("no_port"));
        }));
    require(fails.error().is("no_port"), "init_fail");
    auto throws =
        co_await Supervisor::start_child(sup, plain_child("throws", {}, [](InitAck) -> Async<void> {
                                           throw std::runtime_error("early");
                                           co_return;
                                         }));
    require(throws.error().to_string().find("early") != std::string::npos, "throws");
    auto done = co_await Supervisor::start_child(
        sup,
        plain_child("done", {.restart = Restart::temporary}, []() -> Async<void> { co_return; }));
    require(done.ok(), "one without an ack counts as started at once");
  });
}

TEST_CASE("children whose arguments cannot be copied are made again for each start",
          "[supervisor]") {
  everywhere([]() -> Async<void> {
    struct Owner {
      struct Args {
        std::unique_ptr<int> number;
        Pid witness;
      };
      explicit Owner(Args args) {
        (void)otp::send(args.witness, Event{"owner " + std::to_string(*args.number)});
      }
    };
    auto spec = child<Owner>(
        "owner", [witness = self()] { return Owner::Args{std::make_unique<int>(5), witness}; });
    auto sup = co_await start(only(spec));
    co_await expect(1, "owner 5");
    auto rows = co_await Supervisor::which_children(sup);
    otp::exit(rows[0].pid, ExitReason::kill());
    co_await expect(1, "owner 5");
  });
}

TEST_CASE("R-024 a system with supervised timers and sleepers ends at once", "[supervisor]") {
  auto before = std::chrono::steady_clock::now();
  {
    SystemOptions options;
    options.cores = 2;
    System system(options);
    system.run([]() -> Async<void> {
      auto sup =
          co_await start({.children = {worker("a", {.backoff = {.min = 3600s, .max = 3600s}}),
                                       worker("b", {}, {.stubborn = true})}});
      co_await expect(2, "start a,start b");
      crash("a");
      co_await expect(1, "stop a crashed");
      for (int i = 0; i < 1000; ++i) (void)send_after(1h, sup.pid(), Event{"late"});
    });
  }
  CHECK(std::chrono::steady_clock::now() - before < 10s);
}
