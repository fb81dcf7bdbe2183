#include <stdexcept>

#include "tests/conformance/app_support.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

Applications a_needs_b() { return {witnesses("b"), witnesses("a", {"b"})}; }

Async<void> until_not_running(std::string name) {
  for (;;) {
    bool found = false;
    for (const auto& one : application::which()) found |= one.name == name;
    if (!found) co_return;
    co_await otp::sleep(1ms);
  }
}

}  // namespace

TEST_CASE("APP-001 an application starts only after those that it needs", "[app]") {
  check_apps(
      a_needs_b,
      []() -> Async<std::string> {
        std::string seen = text_of(co_await application::start("a")) + running();
        seen += Events::take() + " " + text_of(co_await application::ensure_all_started("a"));
        co_return seen + running() + " " + Events::take();
      },
      "{not_started,b}[] [b,a][b,a] +b1 +b2 +a1 +a2");
}

TEST_CASE("APP-002 ensure_all_started lists only what it started", "[app]") {
  check_apps(
      a_needs_b,
      []() -> Async<std::string> {
        (void)co_await application::ensure_all_started("b");
        std::string seen = text_of(co_await application::ensure_all_started("a"));
        seen += text_of(co_await application::ensure_all_started("a"));
        co_return seen;
      },
      "[a][]");
}

TEST_CASE("APP-003 starting and stopping what runs, is stopped or is unknown", "[app]") {
  check_apps(
      a_needs_b,
      []() -> Async<std::string> {
        std::string seen = text_of(co_await application::start("b"));
        seen += " " + text_of(co_await application::start("b"));
        seen += " " + text_of(co_await application::stop("b"));
        seen += " " + text_of(co_await application::stop("b"));
        seen += " " + text_of(co_await application::start("c"));
        seen += " " + text_of(co_await application::ensure_all_started("c"));
        seen += " " + text_of(co_await application::stop("c"));
        co_return seen + " " + running() + " " + Events::take();
      },
      "ok {already_started,b} ok {not_started,b} {unknown_application,c} "
      "{c,{unknown_application,c}} {not_started,c} [] +b1 +b2 -b2 -b1");
}

TEST_CASE("an ensure_all_started that fails stops what it had started", "[app]") {
  check_apps(
      [] {
        Applications all = a_needs_b();
        all[1].start = [](SupervisorSpec) -> Async<Result<StartedApplication>> {
          co_return ExitReason::atom("no_disk");
        };
        return all;
      },
      []() -> Async<std::string> {
        std::string seen = text_of(co_await application::ensure_all_started("a"));
        co_return seen + running() + Events::take();
      },
      "{a,{no_disk,{a,start,[normal,[]]}}}[]+b1 +b2 -b2 -b1");
}

namespace {

// What a failing start leaves behind: a linked server of the start function's own.
Async<void> leave_something() {
  (void)co_await otp::start_link<Witness>({"left"}, {.name = "left"});
}

Applications failing_starts() {
  Applications all;
  for (const char* name : {"says", "exits", "throws", "ignores", "nothing"}) {
    Application application;
    application.name = name;
    application.start =
        [name = std::string(name)](SupervisorSpec) -> Async<Result<StartedApplication>> {
      const std::string how = name;
      co_await leave_something();
      if (how == "exits") otp::exit(ExitReason::atom("no_disk"));
      if (how == "throws") throw std::runtime_error("no disk");
      if (how == "ignores") co_return Ignored();
      if (how == "nothing") co_return StartedApplication{.supervisor = {}, .state = Term(7)};
      co_return ExitReason::atom("no_disk");
    };
    all.push_back(std::move(application));
  }
  return all;
}

}  // namespace

TEST_CASE("APP-004 a start that fails says how, and leaves nothing", "[app]") {
  check_apps(
      failing_starts,
      []() -> Async<std::string> {
        std::string seen;
        for (const char* name : {"says", "exits", "throws", "ignores", "nothing"}) {
          ExitReason reason = (co_await application::start(name)).error();
          const std::vector<Term>& items = reason.term().items();
          std::string text = reason.to_string();
          if (std::string(name) == "throws") {  // without the stack
            text = items[1].items()[1].items()[1].items()[0].to_string();
          }
          seen += text + "\n";
          while (whereis("left")) co_await yield();
        }
        co_return seen + running();
      },
      "{no_disk,{says,start,[normal,[]]}}\n"
      "{bad_return,{{exits,start,[normal,[]]},{EXIT,no_disk}}}\n"
      "{std::runtime_error,\"no disk\"}\n"
      "{bad_return,{{ignores,start,[normal,[]]},ignore}}\n"
      "{bad_return,{{nothing,start,[normal,[]]},7}}\n"
      "[]");
}

namespace {

Async<Result<StartedApplication>> start_with_state(SupervisorSpec tree) {
  auto supervisor = (co_await Supervisor::start_link(std::move(tree))).or_exit();
  co_return StartedApplication{.supervisor = supervisor.pid(), .state = Term("S")};
}
Async<Term> prep_stop(Term state) {
  Events::add("prep_stop(" + std::string(state.text()) + ")");
  co_return Term(std::string(state.text()) + "'");
}
Async<void> stopped(Term state) {
  Events::add("stop(" + std::string(state.text()) + ")");
  co_return;
}

Applications with_state() {
  Application both = witnesses("both");
  both.start = start_with_state;
  both.prep_stop = prep_stop;
  both.stop = stopped;
  Application one = witnesses("one");
  one.start = start_with_state;
  one.stop = stopped;
  return {std::move(both), std::move(one)};
}

}  // namespace

TEST_CASE("APP-005 prep_stop, the tree in reverse, stop with what prep_stop gave", "[app]") {
  check_apps(
      with_state,
      []() -> Async<std::string> {
        std::string seen;
        for (const char* name : {"both", "one"}) {
          (void)co_await application::start(name);
          (void)Events::take();
          seen += text_of(co_await application::stop(name)) + " " + Events::take() + "\n";
        }
        co_return seen;
      },
      "ok prep_stop(S) -both2 -both1 stop(S')\n"
      "ok -one2 -one1 stop(S)\n");
}

TEST_CASE("a callback that fails while its application stops does not keep it", "[app]") {
  check_apps(
      [] {
        Applications all = with_state();
        all[0].prep_stop = [](Term) -> Async<Term> { otp::exit(ExitReason::atom("broken")); };
        all[1].stop = [](Term) -> Async<void> { otp::exit(ExitReason::atom("broken")); };
        return all;
      },
      []() -> Async<std::string> {
        (void)co_await application::start("both");
        (void)co_await application::start("one");
        (void)Events::take();
        std::string seen = text_of(co_await application::stop("both"));
        seen += text_of(co_await application::stop("one"));
        co_return seen + running() + " " + Events::take();
      },
      "okok[] -both2 -both1 stop(S) -one2 -one1");
}

TEST_CASE("APP-006 a temporary application that ends can be started again", "[app]") {
  check_apps(
      [] {
        Applications all = with_state();
        all.push_back(witnesses("other"));
        return all;
      },
      []() -> Async<std::string> {
        (void)co_await application::start("other");
        (void)co_await application::start("both");
        (void)Events::take();
        (void)otp::cast(Name<Witness>("both1"), Fail{});
        co_await until_not_running("both");
        std::string seen = Events::take() + " " + running();
        for (const std::string& name : application::loaded()) seen += " " + name;
        seen += " " + text_of(co_await application::start("both")) + running() + " ";
        co_return seen + co_await otp::call(Name<Witness>("other1"), Which{});
      },
      "-both1! -both2 prep_stop(S) stop(S') [other] other both ok[other,both] other");
}

TEST_CASE("APP-008 an explicit stop of a permanent application concerns no other", "[app]") {
  check_apps(
      a_needs_b,
      []() -> Async<std::string> {
        (void)co_await application::ensure_all_started("a", ApplicationType::permanent);
        (void)Events::take();
        std::string seen = text_of(co_await application::stop("b")) + running() + " ";
        seen += Events::take() + " " + co_await otp::call(Name<Witness>("a2"), Which{});
        co_return seen + " " + text_of(co_await application::start("b")) + running();
      },
      "ok[a] -b2 -b1 a ok[a,b]");
}

namespace {

StartPhase phase(const std::string& name, const char* fails = nullptr) {
  return {name, [name, fails]() -> Async<Result<void>> {
            const std::string id = name;
            const std::string how = fails == nullptr ? "" : fails;
            Events::add(id + "(" + application::get_application().value_or("none") + ")");
            if (how == "says") co_return ExitReason::atom("not_now");
            if (how == "exits") otp::exit(ExitReason::atom("broken"));
            co_return Result<void>();
          }};
}

Applications with_phases() {
  Application good = witnesses("good");
  good.start_phases = {phase("p1"), phase("p2")};
  Application bad = witnesses("bad");
  bad.start_phases = {phase("p1"), phase("p2", "says"), phase("p3")};
  Application worse = witnesses("worse");
  worse.start_phases = {phase("p1", "exits"), phase("p2")};
  return {std::move(good), std::move(bad), std::move(worse)};
}

}  // namespace

TEST_CASE("APP-012 start phases follow the tree, and one that fails takes it down", "[app]") {
  check_apps(
      with_phases,
      []() -> Async<std::string> {
        std::string seen;
        for (const char* name : {"good", "bad", "worse"}) {
          seen += text_of(co_await application::start(name)) + ": " + Events::take() + "\n";
        }
        co_return seen + running();
      },
      "ok: +good1 +good2 p1(good) p2(good)\n"
      "{not_now,{bad,start_phase,[p2,normal,[]]}}: +bad1 +bad2 p1(bad) p2(bad) -bad2 -bad1\n"
      "{bad_return,{{worse,start_phase,[p1,normal,[]]},{EXIT,broken}}}: +worse1 +worse2 p1(worse) "
      "-worse2 -worse1\n"
      "[good]");
}

TEST_CASE("APP-013 a process knows its application, and so do those it spawns", "[app]") {
  check_apps(
      a_needs_b,
      []() -> Async<std::string> {
        (void)co_await application::ensure_all_started("a");
        std::string seen = co_await otp::call(Name<Witness>("a1"), Which{});
        seen += co_await otp::call(Name<Witness>("b2"), Which{});
        seen += co_await otp::call(Name<Witness>("b2"), SpawnWhich{});
        co_return seen + application::get_application().value_or("none");
      },
      "abbnone");
}

TEST_CASE("APP-014 the environment outlives a stop and is fresh after a load", "[app]") {
  check_apps(
      [] {
        Applications all = a_needs_b();
        all[0].env = {{"level", Term(1)}};
        return all;
      },
      []() -> Async<std::string> {
        auto get = [](const char* key) {
          auto value = application::get_env("b", key);
          return (value ? value->to_string() : "none") + " ";
        };
        std::string seen = get("level");  // not loaded yet
        (void)co_await application::start("b");
        seen += get("level") + get("size");
        seen += application::get_env("b", "size", Term(9)).to_string() + " ";
        application::set_env("b", "size", Term(2));
        application::set_env("b", "level", Term(3));
        seen += get("size") + get("level");
        seen += application::unset_env("b", "size") ? "unset " : "";
        seen += application::unset_env("b", "size") ? "unset " : "";
        seen += get("size") + text_of(application::unload("b")) + " ";
        (void)co_await application::stop("b");
        seen += get("level") + text_of(application::unload("b")) + " " + get("level");
        seen += text_of(application::load("b")) + " " + get("level");
        seen += text_of(application::load("b")) + text_of(application::load("z"));
        co_return seen + text_of(application::unload("a"));
      },
      "none 1 none 9 2 3 unset none {running,b} 3 ok none ok 1 "
      "{already_loaded,b}{unknown_application,z}{not_loaded,a}");
}

TEST_CASE("APP-015 a bulk set with a bad or a duplicate entry sets nothing", "[app]") {
  check_apps(
      a_needs_b,
      []() -> Async<std::string> {
        using application::ApplicationEnv;
        const ApplicationEnv good{"a", {{"x", Term(1)}, {"y", Term(2)}}};
        std::vector<ApplicationEnv> twice{good, {"b", {}}, {"a", {}}};
        std::vector<ApplicationEnv> twice_a_key{good, {"b", {{"k", Term(1)}, {"k", Term(2)}}}};
        std::vector<ApplicationEnv> no_key{good, {"b", {{"", Term(1)}}}};
        std::vector<ApplicationEnv> no_name{good, {"", {}}};
        std::string seen = text_of(application::set_env(twice));
        seen += text_of(application::set_env(twice_a_key)) + text_of(application::set_env(no_key));
        seen += text_of(application::set_env(no_name));
        seen += application::get_env("a", "x") ? " set" : " nothing";
        seen += text_of(application::set_env({good}));
        co_return seen + application::get_env("a", "y", Term()).to_string();
      },
      "{duplicate_application,a}{duplicate_key,{b,k}}{bad_key,b}bad_application nothingok2");
}
