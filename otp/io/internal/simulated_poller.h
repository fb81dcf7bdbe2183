#pragma once

#include <memory>
#include <utility>

#include "otp/io/simulated_network.h"
#include "otp/io/simulated_programs.h"
#include "otp/runtime/poller.h"

namespace otp::io::internal {

/// Nothing arrives from outside of a simulation: time does it all. It only says what the outside
/// is.
class SimulatedPoller final : public Poller {
 public:
  SimulatedPoller(SimulatedNetwork network, SimulatedPrograms programs)
      : network_(std::move(network)), programs_(std::move(programs)) {}
  void park(int64_t) override {}
  void wake() noexcept override {}
  void poll() override {}
  const SimulatedNetwork& network() const { return network_; }
  const SimulatedPrograms& programs() const { return programs_; }

 private:
  const SimulatedNetwork network_;
  const SimulatedPrograms programs_;
};

}  // namespace otp::io::internal
