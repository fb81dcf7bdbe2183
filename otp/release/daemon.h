#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "otp/release/layout.h"
#include "otp/release/posix.h"

namespace otp::release {

/// The node's end of the pipe over which it tells its starter how the boot went. A default one
/// tells nobody. The first word counts; later ones are dropped.
class Readiness {
 public:
  Readiness() = default;
  explicit Readiness(UniqueFd pipe) : pipe_(std::move(pipe)) {}

  void ready(const std::string& details) { tell("ready", details); }
  void failed(const std::string& reason) { tell("failed", reason); }
  int descriptor() const { return pipe_.get(); }

 private:
  void tell(const char* word, const std::string& text);
  UniqueFd pipe_;
};

/// How a start in the background went.
struct StartResult {
  enum class Role { starter, node };
  Role role = Role::starter;
  int status = 0;            ///< the exit status of this process, whichever it is
  bool ready = false;        ///< starter: the node said so
  long pid = 0;              ///< starter: of the node
  std::string message = {};  ///< starter: the node's details when ready, else why not
};

/// Runs `node` in a process of its own session, streams and descriptors, and waits until it is
/// ready.
///
/// The child: a new session without terminal; standard input from /dev/null, output and error
/// appended to the log; every inherited descriptor closed. So whoever called may close his pipe or
/// terminal at once. The starter waits for ready() or failed(), at most `patience`; a node that is
/// late is asked to stop (TERM) and, 10 s later, killed: after a failed start nothing runs. A
/// failure without a reason comes with the last lines that the node wrote into its log.
///
/// REQUIRES: no other thread runs; layout.run_dir exists; prepare_signals() was called. The starter
/// unblocks the signals again, so that Ctrl-C ends it; the node goes on then.
StartResult start_in_background(const Layout& layout, std::chrono::milliseconds patience,
                                const std::function<int(Readiness)>& node);

}  // namespace otp::release
