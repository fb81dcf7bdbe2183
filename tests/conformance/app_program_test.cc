// The program as a whole: its permanent applications, its orderly end, and how long that may take.

#include "otp/application/controller.h"
#include "tests/conformance/app_support.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Ended {
  int status = -1;
  std::string events;
  Duration took{};
};

using WhenUp = Async<void> (*)();

// Runs the program as otp::run does; `when_up` runs when everything has started.
template <class AnySystem>
Ended run_program(AnySystem& system, std::vector<Application> applications, WhenUp when_up) {
  application::attach(system, applications);
  Ended ended;
  internal::ControllerHooks hooks;
  hooks.report = [](const std::string&) {};
  hooks.ready = [when_up](std::string) { return when_up(); };
  ended.status = system.run(internal::control_applications, applications, hooks);
  ended.events = Events::take();
  return ended;
}

void check_program(MakeApplications applications, WhenUp when_up, int status,
                   const std::string& events) {
  for (int seed = 1; seed <= kAppSeeds; ++seed) {
    Events::clear();
    Simulator simulator(static_cast<uint64_t>(seed));
    INFO("seed " << seed);
    const Ended ended = run_program(simulator, applications(), when_up);
    REQUIRE(ended.status == status);
    REQUIRE(ended.events == events);
  }
  for (int round = 1; round <= kAppRounds; ++round) {
    Events::clear();
    System system({.cores = 2});
    INFO("on threads, round " << round);
    const Ended ended = run_program(system, applications(), when_up);
    REQUIRE(ended.status == status);
    REQUIRE(ended.events == events);
  }
}

Ended in_virtual_time(std::vector<Application> applications, WhenUp when_up) {
  Events::clear();
  Simulator simulator(1);
  const Duration before = simulator.now();
  Ended ended = run_program(simulator, std::move(applications), when_up);
  ended.took = simulator.now() - before;
  return ended;
}

Async<void> ask_to_stop() {
  Events::add("|");
  (void)otp::send(self(), internal::StopApplications{});
  co_return;
}
Async<void> break_a2() {
  Events::add("|");
  (void)otp::cast(Name<Witness>("a21"), Fail{});
  co_return;
}

Applications three() { return {witnesses("a1"), witnesses("a2"), witnesses("a3")}; }
Applications three_with_a2(ApplicationType type) {
  Applications all = three();
  all[1].type = type;
  return all;
}

}  // namespace

TEST_CASE("APP-007 a permanent application that ends takes the program with it", "[app]") {
  check_program(three, break_a2, 1,
                "+a11 +a12 +a21 +a22 +a31 +a32 | -a21! -a22 -a32 -a31 -a12 -a11");
}

TEST_CASE("a transient application takes the program with it only when it fails", "[app]") {
  // It gives up with `shutdown`, which is no failure.
  check_program([] { return three_with_a2(ApplicationType::transient); },
                []() -> Async<void> {
                  (void)otp::cast(Name<Witness>("a21"), Fail{});
                  while (whereis("a2_sup")) co_await yield();
                  co_await ask_to_stop();
                },
                0, "+a11 +a12 +a21 +a22 +a31 +a32 -a21! -a22 | -a32 -a31 -a12 -a11");
  check_program([] { return three_with_a2(ApplicationType::transient); },
                []() -> Async<void> {
                  Pid top = *whereis("a2_sup");
                  for (const char* name : {"a22", "a21"}) {
                    (void)co_await Supervisor::terminate_child(SupervisorRef(top), name);
                  }
                  otp::exit(top, ExitReason::kill());
                },
                1, "+a11 +a12 +a21 +a22 +a31 +a32 -a22 -a21 -a32 -a31 -a12 -a11");
}

TEST_CASE("APP-009 an orderly end stops the applications in reverse", "[app]") {
  check_program(three, ask_to_stop, 0,
                "+a11 +a12 +a21 +a22 +a31 +a32 | -a32 -a31 -a22 -a21 -a12 -a11");
}

TEST_CASE("an application that does not start stops those before it", "[app]") {
  check_program(
      [] {
        Applications all = three();
        all[2].start = [](SupervisorSpec) -> Async<Result<StartedApplication>> {
          co_return ExitReason::atom("no_disk");
        };
        return all;
      },
      ask_to_stop, 1, "+a11 +a12 +a21 +a22 -a22 -a21 -a12 -a11");
}

TEST_CASE("a program whose last application has ended, ends with 0", "[app]") {
  check_program([] { return Applications{three_with_a2(ApplicationType::temporary)[1]}; }, break_a2,
                0, "+a21 +a22 | -a21! -a22");
}

TEST_CASE("APP-011 an application that hangs while it stops is killed after its limit", "[app]") {
  Applications all = three();
  all[1].prep_stop = [](Term) -> Async<Term> {
    co_await otp::sleep(1h);
    Events::add("late");
    co_return Term();
  };
  // Without a limit it is waited for.
  Ended waited = in_virtual_time(all, ask_to_stop);
  CHECK(waited.status == 0);
  CHECK(waited.took >= 1h);
  CHECK(waited.took < 2h);
  CHECK(waited.events == "+a11 +a12 +a21 +a22 +a31 +a32 | -a32 -a31 late -a22 -a21 -a12 -a11");

  all[1].shutdown = 3s;
  Ended killed = in_virtual_time(all, ask_to_stop);
  CHECK(killed.status == 0);
  CHECK(killed.took >= 3s);
  CHECK(killed.took < 4s);
  CHECK(killed.events.find("late") == std::string::npos);
  CHECK(killed.events.find("| -a32 -a31 ") != std::string::npos);
  // The shutdown went on, whenever the children of the killed one end.
  CHECK(killed.events.find("-a12") < killed.events.find("-a11"));
  CHECK(killed.events.find("-a11") != std::string::npos);
}

TEST_CASE("APP-022 in a release each application has its mode, the stronger one wins", "[app]") {
  using enum ApplicationType;
  auto modes = [](std::vector<Application> all,
                  std::vector<std::pair<std::string, ApplicationType>> given) {
    auto ordered = start_order(std::move(all)).value();
    auto result = with_modes(std::move(ordered), given);
    if (!result.ok()) return result.error().to_string();
    std::string text;
    for (const Application& one : result.value()) {
      text += one.name + "=" + std::string(enum_name(*one.type)) + " ";
    }
    return text;
  };
  const Applications all{witnesses("top1", {"base"}), witnesses("top2", {"base"}),
                         witnesses("base")};
  CHECK(modes(all, {}) == "base=permanent top1=permanent top2=permanent ");
  CHECK(modes(all, {{"top1", temporary}, {"top2", transient}}) ==
        "base=transient top1=temporary top2=transient ");
  CHECK(modes(all, {{"top1", load}, {"top2", none}}) == "base=load top1=load top2=none ");
  CHECK(modes(all, {{"base", load}}) == "{bad_mode,{top1,permanent,base,load}}");
  CHECK(modes(all, {{"base", none}, {"top1", load}, {"top2", none}}) ==
        "{bad_mode,{top1,load,base,none}}");
  CHECK(modes(all, {{"bass", load}}) == "{unknown_application,bass}");

  // And what the modes mean.
  Applications program = three();
  program[0].type = load;
  program[0].env = {{"key", Term(1)}};
  program[1].type = none;
  program[1].env = {{"key", Term(1)}};
  Ended ended = in_virtual_time(program, []() -> Async<void> {
    Events::add(application::get_env("a1", "key") ? "a1:loaded" : "a1:no");
    Events::add(application::get_env("a2", "key") ? "a2:loaded" : "a2:no");
    return ask_to_stop();
  });
  CHECK(ended.status == 0);
  CHECK(ended.events == "+a31 +a32 a1:loaded a2:no | -a32 -a31");
}
