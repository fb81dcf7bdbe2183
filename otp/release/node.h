#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "otp/base/json.h"
#include "otp/release/admin_server.h"
#include "otp/release/daemon.h"
#include "otp/release/layout.h"

namespace otp::release {

/// Exit statuses of `bin/<name>`. `status` keeps to those of the Linux Standard Base for init
/// scripts.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;  ///< wrong arguments or a configuration that is not valid
inline constexpr int kExitNotRunning = 3;
inline constexpr int kExitUnknown = 4;  ///< `status` cannot tell: no permission, no answer
inline constexpr int kExitAlreadyRunning = 5;

/// What a running node gets from the release, and tells it. Threads: any, all functions.
class RunContext {
 public:
  RunContext(Layout layout, std::vector<std::string> arguments, bool in_background,
             Readiness readiness);
  ~RunContext();
  RunContext(const RunContext&) = delete;

  const Layout& layout() const;
  /// The words behind `--`.
  const std::vector<std::string>& arguments() const;
  bool in_background() const;

  /// The admin socket, to add commands to; null when the program has no run directory.
  AdminServer* admin() const;

  /// Everything is started. `details` (one line, such as the URL served) is printed by `start` and
  /// shown by `status`.
  void ready(const std::string& details = "");

  /// Tells the operator why the node cannot start or go on: on standard error, and to a waiting
  /// `start`. The hook then returns a non-zero status.
  void fail(const std::string& reason);

  /// `callback` is called once, when TERM, INT or `stop` asks for the orderly end; at once if that
  /// was before. It runs on a thread of the release (or on this one), and must only pass the word
  /// on.
  void on_stop(std::function<void()> callback);
  bool stop_requested() const;

  /// More members for the answer of `status`, called on the admin thread; must not wait for the
  /// node.
  void on_status(std::function<json::object()> callback);

  /// Where the release's own lines go ("stopping on signal TERM") instead of standard error. Any
  /// thread; must not wait.
  void on_report(std::function<void(const std::string& line)> callback);

  /// Asks for the orderly end, as TERM does.
  void request_stop();

 private:
  friend class NodeRunner;
  struct State;
  std::unique_ptr<State> state_;
};

/// Runs `run` as the one node of its run directory: repairs umask, takes the lock, opens the admin
/// socket, watches the signals, and cleans up when it returns. In a managed program the working
/// directory is the run directory, in the foreground as in the background.
///
/// Returns the status of `run`, or kExitFailed / kExitAlreadyRunning with a line for the operator.
/// An exception that leaves `run` counts as fail(what()).
int run_node(const Layout& layout, std::vector<std::string> arguments, bool in_background,
             Readiness readiness, const std::function<int(RunContext&)>& run);

}  // namespace otp::release
