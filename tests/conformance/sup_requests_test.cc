#include "otp/supervision/supervisor.h"

#include "otp/supervision/testing/sup_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

// A start function that says more than the pid.
struct StartsWithInfo {
  Pid witness;
  Async<Result<StartedChild>> operator()() const {
    Worker::Args args{.id = "c", .witness = witness};
    StartOptions options{.name = "c"};
    auto server = co_await otp::start_link<Worker>(std::move(args), std::move(options));
    if (!server.ok()) co_return server.error();
    co_return StartedChild{server.value().pid(), Term("port 80")};
  }
};

}  // namespace

TEST_CASE("SUP-024 start_child appends a child and hands back its information", "[supervisor]") {
  // OTP: supervisor_SUITE:child_adm/1, extra_return/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a")));
    auto plain = co_await Supervisor::start_child(sup, worker("b"));
    require(plain.ok() && plain.value().pid == pid_of("b"), "pid");
    ChildSpec extra = child_started_by("c", StartsWithInfo{self()});
    auto info = co_await Supervisor::start_child(sup, extra);
    require(info.ok() && info.value().pid == pid_of("c"), "pid");
    require(info.value().info == Term("port 80"), "info");
    require(co_await listing(sup) == "c running,b running,a running", "appended");
    co_await expect(3, "start a,start b,start c");
    crash("c");
    co_await expect(2, "stop c crashed,start c");
  });
}

TEST_CASE("SUP-025 start_child refuses an id that is taken", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a")));
    auto running = co_await Supervisor::start_child(sup, worker("a"));
    require(running.error() == ExitReason::tagged("already_started", Term(pid_of("a"))),
            running.error().to_string());
    require((co_await Supervisor::terminate_child(sup, "a")).ok(), "terminate");
    auto stopped = co_await Supervisor::start_child(sup, worker("a"));
    require(stopped.error().is("already_present"), stopped.error().to_string());
  });
}

TEST_CASE("SUP-026 a start_child that fails adds nothing", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_start_child_returns_error/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a")));
    auto trouble = std::make_shared<Trouble>();
    trouble->failures = 1;
    auto thrown = co_await Supervisor::start_child(sup, worker("b", {}, {.trouble = trouble}));
    require(thrown.error().to_string().find("no luck") != std::string::npos, "names the reason");
    auto error =
        co_await Supervisor::start_child(sup, child_started_by("c", []() -> Async<Result<Pid>> {
                                           co_return ExitReason::atom("function_error");
                                         }));
    require(error.error().is("function_error"), error.error().to_string());
    auto raised =
        co_await Supervisor::start_child(sup, child_started_by("d", []() -> Async<Result<Pid>> {
                                           throw std::runtime_error("in the start function");
                                           co_return Pid();
                                         }));
    require(raised.error().to_string().find("in the start function") != std::string::npos, "d");
    require(co_await listing(sup) == "a running", "nothing is added, the supervisor lives");
  });
}

TEST_CASE("SUP-027 an ignored start keeps the specification unless temporary", "[supervisor]") {
  // OTP: supervisor_SUITE:sup_start_ignore_child/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start({});
    auto trouble = std::make_shared<Trouble>();
    for (Restart restart : {Restart::permanent, Restart::transient, Restart::temporary}) {
      trouble->ignores = 1;
      auto started = co_await Supervisor::start_child(
          sup, worker("a", {.restart = restart}, {.trouble = trouble}));
      require(started.ok() && !started.value().pid, "ok without a pid");
      require(co_await listing(sup) == (restart == Restart::temporary ? "" : "a stopped"), "spec");
      if (restart != Restart::temporary) {
        require((co_await Supervisor::delete_child(sup, "a")).ok(), "delete");
      }
    }
    trouble->ignores = 1;
    auto at_start = co_await Supervisor::start_link(
        {.children = {worker("i", {}, {.trouble = trouble}), worker("b")}});
    require(co_await listing(at_start.value()) == "b running,i stopped", "in init too");
  });
}

TEST_CASE("SUP-028 terminate_child", "[supervisor]") {
  // OTP: supervisor_SUITE:child_adm/1
  everywhere([]() -> Async<void> {
    auto sup =
        co_await start({.children = {worker("p"), worker("t", {.restart = Restart::temporary})}});
    require((co_await Supervisor::terminate_child(sup, "p")).ok(), "permanent");
    require((co_await Supervisor::terminate_child(sup, "t")).ok(), "temporary");
    require(co_await listing(sup) == "p stopped", "spec kept, spec removed");
    require((co_await Supervisor::terminate_child(sup, "x")).error().is("not_found"), "unknown");
    require((co_await Supervisor::terminate_child(sup, "p")).ok(), "already stopped");
    co_await expect(4, "start p,start t,stop p shutdown,stop t shutdown");
    require(!co_await receive<Event>(after(ms(20))), "not restarted");
  });
}

TEST_CASE("SUP-029 SUP-030 restart_child and delete_child", "[supervisor]") {
  everywhere([]() -> Async<void> {
    auto sup = co_await start(only(worker("a")));
    require((co_await Supervisor::restart_child(sup, "a")).error().is("running"), "running");
    require((co_await Supervisor::restart_child(sup, "x")).error().is("not_found"), "unknown");
    require((co_await Supervisor::delete_child(sup, "a")).error().is("running"), "running");
    require((co_await Supervisor::delete_child(sup, "x")).error().is("not_found"), "unknown");
    require((co_await Supervisor::terminate_child(sup, "a")).ok(), "terminate");
    auto again = co_await Supervisor::restart_child(sup, "a");
    require(again.ok() && again.value().pid == pid_of("a"), "restarted");
    require((co_await Supervisor::terminate_child(sup, "a")).ok(), "terminate");
    require((co_await Supervisor::delete_child(sup, "a")).ok(), "delete");
    require(co_await listing(sup) == "", "gone");
  });
}

TEST_CASE("SUP-031 SUP-032 which_children and count_children", "[supervisor]") {
  // OTP: supervisor_SUITE:count_children/1
  everywhere([]() -> Async<void> {
    auto sup = co_await start({.children = {worker("a"), supervisor("s", only(worker("x"))),
                                            worker("b", {.restart = Restart::transient})}});
    require((co_await Supervisor::terminate_child(sup, "b")).ok(), "terminate");
    auto rows = co_await Supervisor::which_children(sup);
    require(rows.size() == 3 && rows[0].id == "b" && rows[1].id == "s" && rows[2].id == "a",
            "order");
    require(!rows[0].pid && rows[0].state == ChildState::stopped, "no pid");
    require(rows[1].type == ChildType::supervisor && rows[1].server == "Supervisor", "type");
    require(rows[2].pid == pid_of("a") && rows[2].server == "Worker", "pid and module");
    auto count = co_await Supervisor::count_children(sup);
    require(count == ChildCount{.specs = 3, .active = 2, .supervisors = 1, .workers = 2}, "count");
    require((co_await Supervisor::terminate_child(sup, "s")).ok(), "terminate");
    count = co_await Supervisor::count_children(sup);
    require(count == ChildCount{.specs = 3, .active = 1, .supervisors = 1, .workers = 2},
            "what does not run counts by its type");
  });
}
