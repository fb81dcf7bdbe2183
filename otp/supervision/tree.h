#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "otp/supervision/child_info.h"
#include "otp/supervision/supervisor.h"

/// A snapshot of a supervision tree: what `tree` draws and `status` sums up. Plain data.
namespace otp {

/// What the snapshot knows of a node. `no_answer`: a supervisor that did not tell its children in
/// time, because it starts or stops one.
enum class TreeState : uint8_t { running, restarting, stopped, no_answer };

struct TreeNode {
  std::string id{};    ///< of the specification; empty for the root and under a DynamicSupervisor
  std::string name{};  ///< registered; may be empty
  ChildType type = ChildType::worker;
  TreeState state = TreeState::running;
  Pid pid{};
  std::string server{};    ///< the server type's name; empty: a plain process
  std::string strategy{};  ///< of a supervisor that answered
  Restart restart = Restart::permanent;
  Shutdown shutdown = kDefaultWorkerShutdown;
  bool significant = false;
  uint64_t restarts = 0;             ///< of this child by its supervisor, since it was added
  std::vector<TreeNode> children{};  ///< in start order
  uint64_t children_left_out = 0;    ///< more than options.children_max
};

struct TreeSnapshotOptions {
  Timeout timeout = std::chrono::seconds(2);  ///< for the whole tree
  uint64_t children_max = 1000;               ///< of each DynamicSupervisor; 0 = all
};

/// Asks a supervisor and all supervisors below it. Never waits longer than options.timeout; those
/// who have not answered by then are marked. What starts or ends meanwhile may be in it or not.
///
/// Threads: inside a process.
Async<TreeNode> tree(SupervisorRef root, TreeSnapshotOptions options = {});

}  // namespace otp
