#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "otp/async/async.h"
#include "otp/base/pid.h"
#include "otp/io/descriptor.h"

namespace jobs {

/// Some of the watched descriptors can be used. Handle them, then call Readiness::rearm().
struct DescriptorsReady {};

/// Descriptors of a server whose readiness comes to it as a message, so that it answers others
/// meanwhile: they are in an epoll, and a linked process waits for that.
///
/// A descriptor leaves the set when it is closed. Threads: its server's process.
class Readiness {
 public:
  /// Errors: throws std::system_error when there are no descriptors left.
  Readiness();

  /// Watches for the events of the entries (POLLIN, POLLOUT).
  void watch(const std::vector<pollfd>& entries);
  /// Begins to wait; DescriptorsReady comes to the calling process.
  void start();
  /// Waits again after a DescriptorsReady.
  void rearm();
  /// Ends the waiting process; for terminate().
  void stop();

 private:
  otp::io::Descriptor epoll_;
  otp::Pid waiter_;
};

/// Asks the system which of the entries are ready now.
void look_at(std::vector<pollfd>& entries);

}  // namespace jobs
