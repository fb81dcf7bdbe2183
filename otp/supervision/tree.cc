#include "otp/supervision/tree.h"

#include <algorithm>
#include <optional>

#include "otp/supervision/dynamic_supervisor.h"

namespace otp {

namespace {

using internal::server_type;

struct Limits {
  int64_t deadline;  // on the System's clock
  uint64_t children_max;

  Timeout left() const {
    if (deadline == internal::TimerWheel::kNever) return infinity;
    return Duration(deadline - internal::self_process().system().now());
  }
};

std::string name_of(Pid pid) {
  internal::LibraryScope scope(internal::env());
  return internal::env().system->names().name_of(pid.id);
}

TreeNode node_of(const ChildInfo& child) {
  TreeNode node{.id = child.id};
  node.type = child.type;
  node.state = child.state == ChildState::running      ? TreeState::running
               : child.state == ChildState::restarting ? TreeState::restarting
                                                       : TreeState::stopped;
  node.pid = child.pid;
  if (child.pid) node.name = name_of(child.pid);
  node.server = child.server;
  node.restart = child.restart;
  node.shutdown = child.shutdown;
  node.significant = child.significant;
  node.restarts = child.restarts;
  return node;
}

// A supervisor's own account, if it is of a kind that gives one.
Async<std::optional<Result<SupervisorInfo>>> ask(Pid pid, const internal::ServerType* kind,
                                                 Limits limits) {
  const CallOptions options{.timeout = limits.left()};
  if (kind == &server_type<Supervisor>) {
    auto call = try_call(SupervisorRef(pid), Supervisor::Describe{}, options);
    co_return co_await call;
  }
  if (kind == &server_type<DynamicSupervisor>) {
    DynamicSupervisor::Describe describe{.children_max = limits.children_max};
    auto call = try_call(DynamicSupervisorRef(pid), describe, options);
    co_return co_await call;
  }
  co_return std::nullopt;
}

Async<void> add_children(TreeNode& node, const internal::ServerType* kind, Limits limits) {
  auto answer = co_await ask(node.pid, kind, limits);
  if (!answer) co_return;
  if (!answer->ok()) {
    node.state = answer->error().is("timeout") ? TreeState::no_answer : TreeState::stopped;
    co_return;
  }
  SupervisorInfo info = std::move(*answer).value();
  node.strategy = std::move(info.strategy);
  node.children_left_out = info.children_left_out;
  node.children.reserve(info.children.size());
  for (const ChildInfo& child : info.children) {
    TreeNode& below = node.children.emplace_back(node_of(child));
    if (child.pid && child.type == ChildType::supervisor) {
      co_await add_children(below, child.server_type, limits);
    }
  }
}

}  // namespace

Async<TreeNode> tree(SupervisorRef root, TreeSnapshotOptions options) {
  Limits limits{internal::self_process().system().deadline_after(options.timeout),
                options.children_max};
  TreeNode node;
  node.pid = root.pid();
  node.name = name_of(node.pid);
  node.type = ChildType::supervisor;
  node.server = server_type<Supervisor>.name;
  node.shutdown = infinity;
  co_await add_children(node, &server_type<Supervisor>, limits);
  co_return node;
}

}  // namespace otp
