#include "otp/supervision/supervisor.h"

#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/testing/sup_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

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
    for (ExitReason reason :
         {ExitReason::normal(), ExitReason::shutdown(), ExitReason::atom("bad")}) {
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
    auto with_killed = co_await start(
        {.auto_shutdown = AutoShutdown::any_significant,
         .children = {worker("a"),
                      worker("t", {.restart = Restart::temporary, .significant = true})}});
    co_await expect(2, "start a,start t");
    otp::exit(pid_of("t"), ExitReason::kill());
    co_await expect(1, "stop a shutdown");
    auto killed = co_await receive<ExitMessage>();
    require(killed.from == with_killed.pid() && killed.reason == ExitReason::shutdown(), "killed");
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
