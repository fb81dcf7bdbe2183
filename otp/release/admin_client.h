#pragma once

#include <chrono>
#include <string>

#include "otp/release/admin_server.h"
#include "otp/release/posix.h"

namespace otp::release {

/// The operator's end of the admin socket. One thread.
class AdminClient {
 public:
  enum class Reach {
    connected,
    nobody,  ///< no socket, or nobody behind it
    failed,  ///< there may be somebody: no permission, queue full, path too long
  };

  /// Connects. `within` bounds this and, anew, each ask().
  AdminClient(const std::string& socket_path, std::chrono::milliseconds within);

  Reach reach() const { return reach_; }
  /// Why not connected: one line.
  const std::string& error() const { return error_; }
  /// The node's pid, from the kernel; 0 when it lives in a pid namespace that cannot be seen from
  /// here.
  long node_pid() const { return node_pid_; }

  /// The node closed the connection before it answered: it is on its way out.
  bool closed() const { return closed_; }

  /// Sends a request and waits for its answer. Failures of the way come back as a failed response,
  /// too.
  AdminResponse ask(const AdminRequest& request);

  /// Waits until the node closes the connection, which its end does. False: `deadline` came first.
  bool wait_closed(Clock::time_point deadline);

 private:
  AdminResponse read_answer(Clock::time_point deadline);

  UniqueFd fd_;
  std::chrono::milliseconds within_;
  Reach reach_ = Reach::failed;
  std::string error_;
  long node_pid_ = 0;
  bool closed_ = false;
  std::string buffer_;
};

}  // namespace otp::release
