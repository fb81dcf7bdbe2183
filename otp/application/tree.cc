#include "otp/application/tree.h"

#include <algorithm>
#include <utility>

#include "otp/application/application_table.h"
#include "otp/base/enum_names.h"
#include "otp/supervision/supervisor.h"
#include "otp/supervision/tree.h"

namespace otp::internal {

namespace {

std::string duration_text(Duration time) {
  int64_t ns = time.count();
  if (ns % 1'000'000'000 == 0) return std::to_string(ns / 1'000'000'000) + "s";
  if (ns % 1'000'000 == 0) return std::to_string(ns / 1'000'000) + "ms";
  return std::to_string(ns) + "ns";
}

std::string shutdown_text(Shutdown shutdown) {
  if (shutdown.is_brutal_kill()) return "brutal_kill";
  if (shutdown.is_infinity()) return "infinity";
  return duration_text(shutdown.timeout().duration());
}

observe::TreeNode declared_child(const config::ChildDecl& decl) {
  observe::TreeNode node;
  if (decl.supervisor != nullptr) node = declared_tree(decl.id, *decl.supervisor);
  node.id = decl.id;
  node.name = decl.name.value_or("");
  node.start = decl.start;
  node.restart = enum_name(decl.restart);
  node.shutdown = shutdown_text(decl.shutdown);
  node.state = observe::TreeState::undefined;
  return node;
}

observe::TreeState state_of(TreeState state) {
  switch (state) {
    case TreeState::running: return observe::TreeState::running;
    case TreeState::restarting: return observe::TreeState::restarting;
    case TreeState::no_answer: return observe::TreeState::no_answer;
    case TreeState::stopped: break;
  }
  return observe::TreeState::undefined;
}

observe::TreeNode drawn(const TreeNode& node) {
  observe::TreeNode drawn_node;
  drawn_node.id = node.id.empty() ? node.server : node.id;
  drawn_node.name = node.name;
  drawn_node.kind = node.type == ChildType::supervisor ? observe::TreeKind::supervisor
                                                       : observe::TreeKind::worker;
  drawn_node.state = state_of(node.state);
  drawn_node.pid = node.pid ? node.pid.to_string() : std::string();
  drawn_node.start = node.server;
  drawn_node.strategy = node.strategy;
  drawn_node.restart = enum_name(node.restart);
  drawn_node.shutdown = shutdown_text(node.shutdown);
  if (node.restarts > 0) drawn_node.restarts = node.restarts;
  drawn_node.children_left_out = node.children_left_out;
  drawn_node.children.reserve(node.children.size());
  for (const TreeNode& child : node.children) drawn_node.children.push_back(drawn(child));
  return drawn_node;
}

Pid supervisor_of(const std::string& application) {
  for (const auto& running : application::which()) {
    if (running.name == application) return running.supervisor;
  }
  return {};
}

}  // namespace

observe::TreeNode declared_tree(const std::string& application,
                                const config::SupervisorDecl& decl) {
  observe::TreeNode node;
  node.id = application;
  node.kind = observe::TreeKind::supervisor;
  node.state = observe::TreeState::undefined;
  node.strategy = enum_name(decl.strategy);
  for (const config::ChildDecl& child : decl.children) {
    node.children.push_back(declared_child(child));
  }
  return node;
}

Async<observe::TreeNode> live_tree(std::string application) {
  const Pid supervisor = supervisor_of(application);
  observe::TreeNode node;
  if (supervisor) {
    const TreeNode found = co_await otp::tree(SupervisorRef(supervisor));
    node = drawn(found);
  } else {
    node.kind = observe::TreeKind::supervisor;
    node.state = observe::TreeState::undefined;
  }
  // It is no supervisor's child, so it has no restart and no shutdown of its own.
  node.id = std::move(application);
  node.name.clear();
  node.start.clear();
  node.restart.clear();
  node.shutdown.clear();
  co_return node;
}

Async<std::string> live_trees(std::vector<std::string> applications, bool as_json) {
  std::vector<observe::TreeNode> trees;
  for (std::string& name : applications) {
    trees.push_back(co_await live_tree(std::move(name)));
  }
  std::string text;
  if (!as_json) {
    for (const observe::TreeNode& tree : trees) text += observe::tree_text(tree);
    co_return text;
  }
  if (trees.size() == 1) co_return observe::tree_json(trees.front());
  for (const observe::TreeNode& tree : trees) {
    text += (text.empty() ? "[" : ",") + observe::tree_json(tree);
  }
  co_return text + "]";
}

void add_tree_command(release::NodeCallbacks& callbacks, System& system,
                      std::vector<std::string> applications) {
  callbacks.on_command_later(
      "tree", [&system, applications](release::AdminRequest request, release::AdminReply reply) {
        const json::value* wanted = request.args.if_contains("json");
        bool as_json = wanted != nullptr && wanted->is_bool() && wanted->as_bool();
        // The process answers when it has asked the supervisors; if the node ends first, letting go
        // of the reply says so.
        system.spawn(
            [](std::vector<std::string> names, bool in_json,
               release::AdminReply answer) -> Async<void> {
              const std::string text = co_await live_trees(std::move(names), in_json);
              answer.answer(release::AdminResponse::text(text));
            },
            applications, as_json, std::move(reply));
      });
}

}  // namespace otp::internal
