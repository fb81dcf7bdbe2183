#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "otp/io/simulated_programs.h"
#include "otp/runtime/system.h"

/// A virtual network for a Simulator: the sockets of socket.h without an operating system.
///
///     otp::io::SimulatedNetwork network;
///     otp::Simulator sim(seed, otp::io::simulated_options({}, network));
///     sim.run(my_server_and_its_clients);
///     network.reset_connections();            // all at once, as when a router restarts
///
/// Bytes arrive in order after a delay drawn from the seed, cut into pieces at places drawn from
/// it: what TCP may do to a stream, it does. A connection takes a full window without a reader and
/// then makes its writer wait. Listening on port 0 picks ports from 49152 on.
namespace otp::io {

class SimulatedNetwork {
 public:
  struct Options {
    Duration delay_min = std::chrono::microseconds(20);
    Duration delay_max = std::chrono::milliseconds(1);
    size_t window_bytes = 64 << 10;  ///< written and not yet read, one way of one connection
    size_t piece_bytes_max = 1460;   ///< what a read takes at once at most; never split below one
  };
  SimulatedNetwork() : SimulatedNetwork(Options()) {}
  explicit SimulatedNetwork(Options options);

  /// Every connection that is open now ends with connection_reset on both sides.
  void reset_connections();
  /// While stalled nothing arrives anywhere; what is under way waits and is not lost.
  void stall(bool stalled);
  uint64_t connections_open() const;

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// The same options with `network` and `programs` in the place of the operating system.
SystemOptions simulated_options(SystemOptions options = {}, SimulatedNetwork network = {},
                                SimulatedPrograms programs = {});

}  // namespace otp::io
