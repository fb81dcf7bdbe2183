#include "otp/application/tree.h"

#include <chrono>
#include <utility>

#include "otp/application/controller.h"
#include "otp/base/enum_names.h"
#include "otp/supervision/supervisor.h"

namespace otp::internal {

namespace {

constexpr CallOptions kPatience{.timeout = std::chrono::seconds(1)};

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

template <class E>
std::string word(E value) {
  for (const auto& named : enum_names<E>) {
    if (named.value == value) return std::string(named.name);
  }
  return {};
}

observe::TreeNode declared_child(const config::ChildDecl& decl) {
  observe::TreeNode node;
  if (decl.supervisor != nullptr) node = declared_tree(decl.id, *decl.supervisor);
  node.id = decl.id;
  node.name = decl.name.value_or("");
  node.start = decl.start;
  node.restart = word(decl.restart);
  node.shutdown = shutdown_text(decl.shutdown);
  node.state = observe::TreeState::undefined;
  return node;
}

observe::TreeState state_of(ChildState state) {
  switch (state) {
    case ChildState::running: return observe::TreeState::running;
    case ChildState::restarting: return observe::TreeState::restarting;
    case ChildState::stopped: break;
  }
  return observe::TreeState::undefined;
}

Async<void> add_children(observe::TreeNode& node, SupervisorRef supervisor);

Async<observe::TreeNode> live_child(ChildInfo info) {
  observe::TreeNode node;
  node.id = info.id;
  node.name = info.pid ? env().system->names().name_of(info.pid.id) : std::string();
  node.kind = info.type == ChildType::supervisor ? observe::TreeKind::supervisor
                                                 : observe::TreeKind::worker;
  node.state = state_of(info.state);
  node.pid = info.pid ? info.pid.to_string() : std::string();
  node.start = info.server;
  node.restart = word(info.restart);
  node.shutdown = shutdown_text(info.shutdown);
  if (info.restarts > 0) node.restarts = info.restarts;
  if (info.pid && info.server_type == &server_type<Supervisor>) {
    co_await add_children(node, SupervisorRef(info.pid));
  }
  co_return node;
}

Async<void> add_children(observe::TreeNode& node, SupervisorRef supervisor) {
  Supervisor::Describe request;
  auto info = co_await try_call(supervisor, request, kPatience);
  if (!info.ok()) co_return;
  node.strategy = info.value().strategy;
  for (ChildInfo& child : info.value().children) {
    node.children.push_back(co_await live_child(std::move(child)));
  }
}

}  // namespace

observe::TreeNode declared_tree(const std::string& application,
                                const config::SupervisorDecl& decl) {
  observe::TreeNode node;
  node.id = application;
  node.kind = observe::TreeKind::supervisor;
  node.state = observe::TreeState::undefined;
  node.strategy = word(decl.strategy);
  for (const config::ChildDecl& child : decl.children) {
    node.children.push_back(declared_child(child));
  }
  return node;
}

Async<observe::TreeNode> live_tree(std::string application) {
  observe::TreeNode node;
  node.id = application;
  node.kind = observe::TreeKind::supervisor;
  std::string name = top_supervisor_name(application);
  auto pid = whereis(name);
  if (!pid) {
    node.state = observe::TreeState::undefined;
    co_return node;
  }
  node.pid = pid->to_string();
  co_await add_children(node, SupervisorRef(*pid));
  co_return node;
}

void add_tree_command(release::NodeCallbacks& callbacks, System& system, std::string application) {
  callbacks.on_command_later(
      "tree", [&system, application](release::AdminRequest request, release::AdminReply reply) {
        const json::value* wanted = request.args.if_contains("json");
        bool as_json = wanted != nullptr && wanted->is_bool() && wanted->as_bool();
        // The process answers when it has asked the supervisors; if the node ends first, letting go
        // of the reply says so.
        system.spawn(
            [](std::string name, bool in_json, release::AdminReply answer) -> Async<void> {
              observe::TreeNode tree = co_await live_tree(std::move(name));
              answer.answer(release::AdminResponse::text(in_json ? observe::tree_json(tree)
                                                                 : observe::tree_text(tree)));
            },
            application, as_json, std::move(reply));
      });
}

}  // namespace otp::internal
