#include "tests/sim/tree_model.h"

#include <algorithm>
#include <stdexcept>

namespace otp::sim {

std::unique_ptr<Model::Node> Model::make(const Plan& plan, Node& parent) {
  auto node = std::make_unique<Node>();
  node->plan = plan;
  node->parent = &parent;
  return node;
}

Model::Node* Model::find_in(Node& sup, const std::string& id) {
  for (auto& child : sup.children) {
    if (child->plan.id == id) return child.get();
  }
  return nullptr;
}

size_t Model::index_of(const Node& child) {
  auto& all = child.parent->children;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].get() == &child) return i;
  }
  throw std::logic_error("model: no such child");
}

void Model::erase(Node& child) {
  auto& all = child.parent->children;
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(index_of(child)));
}

// A dynamic supervisor keeps nothing of what ended.
void Model::forget_if_temporary(Node& child) {
  if (child.plan.restart == Restart::temporary || child.parent->plan.kind == Plan::Kind::dynamic) {
    erase(child);
  }
}

void Model::see(std::string event) {
  if (!together_) events_.emplace_back();
  events_.back().push_back(std::move(event));
}

// ---- Starting

Model::Started Model::start(Node& node) {
  if (node.plan.kind == Plan::Kind::worker) {
    if (node.plan.start_time > Duration(0)) {
      see("init " + node.plan.id);
      now += node.plan.start_time;
    }
    if (ignores[node.plan.id]-- > 0) return Started::ignored;
    if (failures[node.plan.id]-- > 0) return Started::failed;
    see("start " + node.plan.id);
    node.up = true;
    return Started::ok;
  }
  node.children.clear();
  node.restarts.clear();
  for (const Plan& plan : node.plan.children) {
    node.children.push_back(make(plan, node));
    Node& child = *node.children.back();
    switch (start(child)) {
      case Started::ok: break;
      case Started::ignored: forget_if_temporary(child); break;
      case Started::failed:
        node.children.pop_back();
        stop_all(node);
        return Started::failed;
    }
  }
  node.up = true;
  return Started::ok;
}

// ---- Stopping

void Model::stop_worker(Node& node) {
  const Plan& plan = node.plan;
  node.up = false;
  if (plan.brutal_kill) return;
  if (plan.stubborn) {
    now += plan.shutdown;
    return;
  }
  if (plan.stop_time > Duration(0)) {
    see("told " + plan.id);
    now += std::min(plan.stop_time, plan.shutdown);
    if (plan.stop_time > plan.shutdown) return;
  }
  see("stop " + plan.id + " shutdown");
}

void Model::stop(Node& node) {
  if (!node.up) return;
  node.up = false;
  switch (node.plan.kind) {
    case Plan::Kind::worker: return stop_worker(node);
    case Plan::Kind::supervisor: return stop_all(node);
    case Plan::Kind::dynamic: return stop_together(node);
  }
}

void Model::stop_all(Node& sup) {
  if (sup.plan.kind == Plan::Kind::dynamic) return stop_together(sup);
  for (size_t i = sup.children.size(); i-- > 0;) stop(*sup.children[i]);
  sup.children.clear();
}

// All at once: it takes as long as the slowest.
void Model::stop_together(Node& sup) {
  const Duration begin = now;
  Duration end = now;
  const bool outer = together_;
  if (!outer) events_.emplace_back();
  together_ = true;
  for (auto& child : sup.children) {
    now = begin;
    stop(*child);
    end = std::max(end, now);
  }
  together_ = outer;
  now = end;
  sup.children.clear();
}

void Model::stop_root() { stop(root_); }

// No orderly end: the children's links tell them, supervisors among them stop their own as their
// parent is gone, and nobody waits for anybody.
void Model::kill_root() {
  events_.emplace_back();
  together_ = true;
  for (auto& child : root_.children) orphan(*child);
  together_ = false;
  root_.children.clear();
  root_.up = false;
}

void Model::orphan(Node& node) {
  if (!node.up) return;
  if (node.plan.kind != Plan::Kind::worker) return stop(node);
  if (node.plan.stop_time > Duration(0)) see("told " + node.plan.id);
  now += node.plan.stop_time;
  see("stop " + node.plan.id + " killed");
}

// ---- The end of a child

void Model::end(Node& worker, const std::string& reason) {
  if (worker.plan.stop_time > Duration(0)) {
    see("told " + worker.plan.id);
    now += worker.plan.stop_time;
  }
  see("stop " + worker.plan.id + " " + reason);
  worker.up = false;
  ended(worker, reason == "crashed");
}

void Model::kill(Node& worker) {
  worker.up = false;
  ended(worker, true);
}

void Model::ended(Node& child, bool abnormally) {
  if (child.parent == nullptr) return;
  const bool again = child.plan.restart == Restart::permanent ||
                     (child.plan.restart == Restart::transient && abnormally);
  if (again) return restart(child);
  Node& sup = *child.parent;
  const bool shutdown = shuts_down(child);
  forget_if_temporary(child);
  if (shutdown) give_up(sup);
}

bool Model::shuts_down(Node& child) const {
  const AutoShutdown kind = child.parent->plan.auto_shutdown;
  if (!child.plan.significant || kind == AutoShutdown::never) return false;
  if (kind == AutoShutdown::any_significant) return true;
  return std::none_of(child.parent->children.begin(), child.parent->children.end(),
                      [](auto& each) { return each->plan.significant && each->up; });
}

// The supervisor stops its children and ends with `shutdown`; its own parent decides what then.
void Model::give_up(Node& sup) {
  stop_all(sup);
  sup.up = false;
  ended(sup, false);
}

void Model::restart(Node& child) {
  Node& sup = *child.parent;
  std::erase_if(sup.restarts, [&](Duration at) { return now - at > kPeriod; });
  sup.restarts.push_back(now);
  if (sup.restarts.size() > sup.plan.intensity) return give_up(sup);
  if (sup.plan.strategy == Strategy::one_for_one) {
    switch (start(child)) {
      case Started::ok: return;
      case Started::ignored: return forget_if_temporary(child);
      case Started::failed: return restart(child);
    }
  }
  const size_t from = sup.plan.strategy == Strategy::one_for_all ? 0 : index_of(child);
  for (size_t i = sup.children.size(); i-- > from;) {
    stop(*sup.children[i]);
    forget_if_temporary(*sup.children[i]);
  }
  for (size_t i = from; i < sup.children.size(); ++i) {
    if (start(*sup.children[i]) == Started::failed) return restart(*sup.children[i]);
  }
}

// ---- Requests

std::string Model::terminate_child(Node& sup, const std::string& id) {
  Node* child = find_in(sup, id);
  if (child == nullptr) return "not_found";
  stop(*child);
  forget_if_temporary(*child);
  return "ok";
}

std::string Model::restart_child(Node& sup, const std::string& id) {
  Node* child = find_in(sup, id);
  if (child == nullptr) return "not_found";
  if (child->up) return "running";
  return start(*child) == Started::failed ? "failed" : "ok";
}

std::string Model::delete_child(Node& sup, const std::string& id) {
  Node* child = find_in(sup, id);
  if (child == nullptr) return "not_found";
  if (child->up) return "running";
  erase(*child);
  return "ok";
}

std::string Model::start_child(Node& sup, const Plan& plan) {
  if (Node* present = find_in(sup, plan.id)) return present->up ? "already_started" : "present";
  sup.children.push_back(make(plan, sup));
  Node& child = *sup.children.back();
  switch (start(child)) {
    case Started::ok: return "ok";
    case Started::ignored: forget_if_temporary(child); return "ok";
    case Started::failed: sup.children.pop_back(); return "failed";
  }
  return "?";
}

}  // namespace otp::sim
