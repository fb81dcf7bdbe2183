#pragma once

#include <string>
#include <utility>

#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/partition_supervisor.h"
#include "otp/supervision/testing/sup_fixture.h"

/// What the tests of dynamic supervisors and of partitions share.
namespace otp::supervision_testing {

using Dynamic = DynamicSupervisor;

/// Starts a dynamic supervisor, whose end this process sees as a message.
inline Async<DynamicSupervisorRef> start_dynamic(DynamicSupervisorSpec spec = {}) {
  trap_exit(true);
  co_return (co_await Dynamic::start_link(spec)).or_exit();
}
inline Async<Pid> add(DynamicSupervisorRef sup, ChildSpec spec) {
  auto started = co_await Dynamic::start_child(sup, std::move(spec));
  require(started.ok(), started.error().to_string());
  co_return started.value().pid;
}
inline ChildSpec nameless(Restart restart = Restart::temporary, Worker::Args args = {}) {
  return child<Worker>("same", std::move(args), {.restart = restart});
}

/// Partitions pool.0 to pool.3, each with its number.
inline PartitionSpec four_workers() {
  PartitionSpec spec;
  spec.name = "pool";
  spec.partitions = 4;
  spec.child = [witness = self()](uint32_t partition, std::string name) {
    Worker::Args args{.id = name, .witness = witness, .number = static_cast<int>(partition)};
    return child<Worker>({}, std::move(args), {.name = name});
  };
  return spec;
}

}  // namespace otp::supervision_testing
