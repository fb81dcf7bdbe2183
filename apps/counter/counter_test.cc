#include "apps/counter/counter.h"

#include <catch2/catch.hpp>

#include "apps/counter/demonstration.h"
#include "otp/application/application.h"
#include "otp/config/check.h"
#include "otp/testing/simulator.h"

using counter::Counter;

TEST_CASE("counter adds the amount it is given", "[counter]") {
  Counter plain({.start = 40});  // a plain object: no runtime, no scheduler
  CHECK(plain.handle_call(counter::Increment{.by = 2}) == 42);
  plain.handle_cast(counter::Reset{});
  CHECK(plain.handle_call(counter::Get{}) == 0);
}

TEST_CASE("a shared variable loses updates, a server none, in every interleaving", "[counter]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    otp::Simulator simulator(seed);
    auto shared = simulator.run(counter::count_shared, int64_t{8}, int64_t{100});
    CHECK(shared.lost() > 0);
    auto server = otp::start<Counter>(simulator, {.start = 3}).value();
    auto actor = simulator.run(counter::count_with_server, server, int64_t{8}, int64_t{100});
    CHECK(actor.lost() == 0);
  }
}

TEST_CASE("twenty times out of twenty on real threads", "[counter]") {
  otp::System system;
  auto server = otp::start<Counter>(system).value();
  for (int i = 0; i < 20; ++i) {
    auto shared = system.run(counter::count_shared, int64_t{8}, int64_t{5000});
    CHECK(shared.lost() > 0);
    auto actor = system.run(counter::count_with_server, server, int64_t{8}, int64_t{5000});
    CHECK(actor.line("actor") == "actor: expected 40000 actual 40000 lost 0");
  }
}

TEST_CASE("a demonstration that is given no counter is refused by the check", "[counter]") {
  otp::config::ApplicationDecl declared{.name = "counter"};
  for (const auto& entry : otp::servers<Counter, counter::Demonstration>()) {
    declared.servers.push_back(entry.decl);
  }
  const auto result = otp::config::check(
      "application: counter\n"
      "supervisor: {children: [{id: demonstration, start: Demonstration, args: {writers: 1}}]}\n",
      "counter.yaml", {declared}, {});
  CHECK_THAT(result.text(), Catch::Contains("expected the argument counter of Demonstration (the "
                                            "name of a child that runs Counter), got none"));
}
