// Process groups: SYS-013.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "otp/registry/pg.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;

namespace {

using Scope = Server<ProcessGroups>;

Async<std::string> groups_of(Scope scope) {
  std::string text;
  for (const std::string& each : co_await ProcessGroups::which_groups(scope)) text += each + " ";
  co_return text;
}
Async<size_t> size_of(Scope scope, std::string group) {
  auto pids = co_await ProcessGroups::members(scope, std::move(group));
  co_return pids.size();
}

}  // namespace

TEST_CASE("SYS-013 a process is in a group once for each join, until it leaves or ends", "[sys]") {
  everywhere([]() -> Async<void> {
    auto scope = (co_await start<ProcessGroups>()).or_exit();
    Pid member = spawn(wait_for_ever);
    co_await ProcessGroups::join(scope, "a", member);
    co_await ProcessGroups::join(scope, "a", member);
    co_await ProcessGroups::join(scope, "b", member);
    co_await ProcessGroups::join(scope, "b", self());
    require(co_await size_of(scope, "a") == 2, "not counted for each join");
    require_equal(co_await groups_of(scope), "a b ");

    require((co_await ProcessGroups::leave(scope, "a", member)).ok(), "cannot leave");
    require(co_await size_of(scope, "a") == 1, "one leave undoes one join");
    auto left = co_await ProcessGroups::leave(scope, "a", self());
    require(!left.ok() && left.error().is("not_joined"), "left without a membership");
    left = co_await ProcessGroups::leave(scope, "nothing", member);
    require(!left.ok() && left.error().is("not_joined"), "left a group that is none");

    co_await end(member);
    // The scope has its DOWN by now or gets it before this call.
    while (co_await size_of(scope, "a") > 0) co_await yield();
    auto others = co_await ProcessGroups::members(scope, "b");
    require(others == std::vector<Pid>{self()}, "the dead is a member");
    require_equal(co_await groups_of(scope), "b ");
    require((co_await ProcessGroups::leave(scope, "b", self())).ok(), "cannot leave");
    require_equal(co_await groups_of(scope), "");
    co_await stop(scope);
  });
}

TEST_CASE("SYS-013 a dead process that is joined is no member for long", "[sys]") {
  everywhere([]() -> Async<void> {
    auto scope = (co_await start<ProcessGroups>()).or_exit();
    Pid dead = spawn(wait_for_ever);
    co_await end(dead);
    co_await ProcessGroups::join(scope, "a", dead);
    while (co_await size_of(scope, "a") > 0) co_await yield();
    require_equal(co_await groups_of(scope), "");
    co_await stop(scope);
  });
}
