#include "otp/supervision/partition_supervisor.h"

#include "otp/supervision/testing/pool_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;

TEST_CASE("partitions can be a child of a supervisor", "[partition_supervisor]") {
  everywhere(
      []() -> Async<void> {
        trap_exit(true);
        SupervisorSpec top;
        top.children = {PartitionSupervisor<Worker>::child_spec("pool", four_workers())};
        (void)(co_await Supervisor::start_link(std::move(top))).or_exit();
        Partitions<Worker> pool("pool", 4);
        require(co_await otp::call(pool.server(9), Worker::Number{}) == 1, "found by name");
      },
      kFewRounds);
}
