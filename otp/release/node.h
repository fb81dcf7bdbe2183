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

  /// Everything is started. `details` (one line, such as the URL served) is printed by `start` and
  /// shown by `status`.
  void ready(const std::string& details = "");

  /// Tells the operator why the node cannot start or go on: on standard error, and to a waiting
  /// `start`. The hook then returns a non-zero status.
  void fail(const std::string& reason);

  /// Asks for the orderly end, as TERM does.
  void request_stop();
  bool stop_requested() const;

 private:
  friend class NodeCallbacks;
  friend class NodeRunner;
  struct State;
  std::unique_ptr<State> state_;
};

/// What the release may call in the node. All of it is withdrawn by the destructor, which waits for
/// a call that is under way; so declare it after whatever the callbacks refer to:
///
///     System system(...);
///     NodeCallbacks callbacks(context);
///     callbacks.on_stop([&] { system.request_stop(); });
///     callbacks.on_command("tree", ...);
///     context.ready(url);
///
/// Callbacks run on the release's threads, one at a time. None may wait: not for the node, not for
/// another callback. One NodeCallbacks at a time.
class NodeCallbacks {
 public:
  explicit NodeCallbacks(RunContext& context);
  ~NodeCallbacks();
  NodeCallbacks(const NodeCallbacks&) = delete;

  /// Called once, when TERM, INT or `stop` asks for the orderly end; here and now if that was
  /// before.
  void on_stop(std::function<void()> callback);

  /// More members for the answer of `status`.
  void on_status(std::function<json::object()> callback);

  /// Where the release's own lines go ("stopping on signal TERM") instead of standard error.
  void on_report(std::function<void(const std::string& line)> callback);

  /// Commands of the admin socket, see AdminServer::on and on_later. Nothing happens in a program
  /// without a run directory, as it has no socket.
  void on_command(std::string command, std::function<AdminResponse(const AdminRequest&)> callback);
  void on_command_later(std::string command,
                        std::function<void(AdminRequest, AdminReply)> callback);

 private:
  RunContext::State& state_;
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
