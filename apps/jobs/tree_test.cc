// The tree that config/jobs.yaml, or another one, makes of the service; nothing is started.

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "apps/jobs/service.h"
#include "apps/jobs/testing/configuration.h"
#include "otp/application/application.h"
#include "otp/config/check.h"
#include "otp/supervision/child_spec.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

/// What `check` says of a file with these children; the first of them is line 6.
otp::config::CheckResult check(const std::string& children) {
  return testing::check(
      "application: jobs\n"
      "settings: {listen: 127.0.0.1:0, kinds: {echo: {command: [cat]}}}\n"
      "supervisor:\n"
      "  auto_shutdown: any_significant\n"
      "  children:\n" +
      children);
}

constexpr const char* kStore = "    - {id: store, start: Store, name: store}\n";
constexpr const char* kLimiters =
    "    - {id: limiters, start: Limiters, name: limiters,\n"
    "       args: {store: store, spawner: spawner, workers: workers}}\n";
constexpr const char* kSpawner = "    - {id: spawner, start: Spawner, name: spawner}\n";
constexpr const char* kWorkers = "    - {id: workers, start: Workers, name: workers}\n";
constexpr const char* kListener =
    "    - {id: listener, start: Listener, args: {store: store, limiters: limiters}}\n";

}  // namespace

TEST_CASE("what the file says of a child reaches the child, whatever it runs", "[jobs][tree]") {
  const std::string said =
      ", restart: transient, shutdown: 7s, significant: true, drop_expired: true, "
      "backoff: {min: 1s, max: 4s, factor: 3}";
  const std::string limited = said + ", mailbox: {max: 9, on_full: reject}}\n";
  auto result = check("    - {id: store, start: Store, name: store" + limited +
                      "    - {id: limiters, start: Limiters, name: limiters, args: {store: store, "
                      "spawner: spawner, workers: workers}" +
                      limited + "    - {id: spawner, start: Spawner, name: spawner" + limited +
                      "    - {id: workers, start: Workers, name: workers" + said + "}\n" +
                      "    - {id: listener, start: Listener, name: listener, args: {store: store, "
                      "limiters: limiters}" +
                      limited);
  INFO(result.text());
  REQUIRE(result.ok());
  const otp::SupervisorSpec spec =
      otp::supervisor_spec(result.configuration->supervisor, application().servers);
  REQUIRE(spec.children.size() == 5);
  for (const otp::ChildSpec& child : spec.children) {
    INFO(child.id);
    CHECK(child.restart == otp::Restart::transient);
    CHECK(child.shutdown == otp::Shutdown(7s));
    CHECK(child.significant);
    CHECK(child.drop_expired);
    CHECK(child.backoff == otp::Backoff{.min = 1s, .max = 4s, .factor = 3});
    CHECK(child.mailbox.letters_max == (child.id == "workers" ? 0 : 9));
  }
}

TEST_CASE("a tree in which a server lacks one that it needs is refused", "[jobs][tree]") {
  struct Wrong {
    std::string children;
    std::string said;
  };
  const std::string rest = std::string(kSpawner) + kWorkers + kListener;
  const auto wrong = GENERATE_REF(
      Wrong{kLimiters + rest, "7:22: expected the name of a child that runs Store, got store"},
      Wrong{"    - {id: store, start: Store}\n" + (kLimiters + rest),
            "8:22: expected the name of a child that runs Store, got store, the id of a child "
            "without a name"},
      Wrong{std::string(kStore) + kLimiters + kWorkers + kListener,
            "8:38: expected the name of a child that runs Spawner, got spawner"},
      Wrong{std::string(kStore) + kLimiters + kSpawner + kListener,
            "8:56: expected the name of a child that runs Workers, got workers"},
      Wrong{kStore + rest, "expected the name of a child that runs Limiters, got limiters"},
      Wrong{std::string(kStore) + "    - {id: limiters, start: Limiters, name: limiters}\n" + rest,
            "expected the argument store of Limiters (the name of a child that runs Store), got "
            "none"});
  const auto result = check(wrong.children);
  INFO(wrong.children);
  CHECK_FALSE(result.ok());
  CHECK_THAT(result.text(), Catch::Contains(wrong.said));
}

TEST_CASE("servers may have any names", "[jobs][tree]") {
  const auto result = check(
      "    - {id: a, start: Store, name: disk}\n"
      "    - {id: b, start: Limiters, name: gate, args: {store: disk, spawner: e, workers: d}}\n"
      "    - {id: c, start: Spawner, name: e}\n"
      "    - {id: d, start: Workers, name: d}\n"
      "    - {id: f, start: Listener, args: {store: disk, limiters: gate}}\n");
  INFO(result.text());
  CHECK(result.ok());
}

}  // namespace jobs
