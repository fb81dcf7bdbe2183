// Random supervision trees against a model of OTP's rules that shares no code with the library.
//
// A seed makes a tree (strategies, restart types, intensities) and a series of acts: a worker ends,
// a client asks for something, some starts will fail, time passes. After each act the order of
// starts and stops, who lives, and what the client was told must be what the model says. The seed
// also drives the scheduler, so every act meets another interleaving.

#include <algorithm>
#include <map>
#include <random>

#include "otp/supervision/testing/sup_fixture.h"
#include "otp/supervision/tree.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

namespace {

struct Plan {
  std::string id;
  bool is_supervisor = false;
  Restart restart = Restart::permanent;
  Strategy strategy = Strategy::one_for_one;
  uint32_t intensity = 1;
  std::vector<Plan> children;
};

// ---- The model: lists and recursion, nothing clever.

class Model {
 public:
  struct Node {
    Plan plan;
    Node* parent = nullptr;
    bool up = false;
    std::vector<std::unique_ptr<Node>> children;
    std::vector<Duration> restarts;
  };

  explicit Model(Plan root) { root_.plan = std::move(root); }

  Node root_;
  std::map<std::string, int> failures;  // starts of that worker that will fail
  std::vector<std::string> events;
  Duration now{0};

  bool start(Node& node) {
    if (!node.plan.is_supervisor) {
      if (failures[node.plan.id] > 0) {
        --failures[node.plan.id];
        return false;
      }
      events.push_back("start " + node.plan.id);
      return node.up = true;
    }
    node.children.clear();
    node.restarts.clear();
    for (const Plan& plan : node.plan.children) {
      node.children.push_back(make(plan, node));
      if (start(*node.children.back())) continue;
      node.children.pop_back();
      stop_all(node);
      return false;
    }
    return node.up = true;
  }

  // A worker ends by itself.
  void end(Node& worker, const std::string& reason) {
    events.push_back("stop " + worker.plan.id + " " + reason);
    worker.up = false;
    ended(worker, reason == "crashed");
  }

  std::string terminate_child(Node& sup, const std::string& id) {
    Node* child = find_in(sup, id);
    if (child == nullptr) return "not_found";
    stop(*child);
    forget_if_temporary(*child);
    return "ok";
  }
  std::string restart_child(Node& sup, const std::string& id) {
    Node* child = find_in(sup, id);
    if (child == nullptr) return "not_found";
    if (child->up) return "running";
    return start(*child) ? "ok" : "failed";
  }
  std::string delete_child(Node& sup, const std::string& id) {
    Node* child = find_in(sup, id);
    if (child == nullptr) return "not_found";
    if (child->up) return "running";
    erase(*child);
    return "ok";
  }
  std::string start_child(Node& sup, const Plan& plan) {
    if (Node* present = find_in(sup, plan.id)) return present->up ? "already_started" : "present";
    sup.children.push_back(make(plan, sup));
    if (start(*sup.children.back())) return "ok";
    sup.children.pop_back();
    return "failed";
  }

 private:
  static std::unique_ptr<Node> make(const Plan& plan, Node& parent) {
    auto node = std::make_unique<Node>();
    node->plan = plan;
    node->parent = &parent;
    return node;
  }
  static Node* find_in(Node& sup, const std::string& id) {
    for (auto& child : sup.children) {
      if (child->plan.id == id) return child.get();
    }
    return nullptr;
  }
  static size_t index_of(const Node& child) {
    auto& all = child.parent->children;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].get() == &child) return i;
    }
    throw std::logic_error("model: no such child");
  }
  static void erase(Node& child) {
    auto& all = child.parent->children;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(index_of(child)));
  }
  static void forget_if_temporary(Node& child) {
    if (child.plan.restart == Restart::temporary) erase(child);
  }

  void stop(Node& node) {
    if (!node.up) return;
    if (node.plan.is_supervisor) {
      stop_all(node);
    } else {
      events.push_back("stop " + node.plan.id + " shutdown");
    }
    node.up = false;
  }
  void stop_all(Node& sup) {
    for (size_t i = sup.children.size(); i-- > 0;) stop(*sup.children[i]);
    sup.children.clear();
  }

  void ended(Node& child, bool abnormally) {
    if (child.parent == nullptr) return;
    const bool again = child.plan.restart == Restart::permanent ||
                       (child.plan.restart == Restart::transient && abnormally);
    if (again) return restart(child);
    forget_if_temporary(child);
  }

  void restart(Node& child) {
    Node& sup = *child.parent;
    std::erase_if(sup.restarts, [&](Duration at) { return now - at > kDefaultPeriod; });
    sup.restarts.push_back(now);
    if (sup.restarts.size() > sup.plan.intensity) {
      stop_all(sup);
      sup.up = false;
      return ended(sup, false);  // with `shutdown`
    }
    if (sup.plan.strategy == Strategy::one_for_one) {
      if (!start(child)) restart(child);
      return;
    }
    const size_t from = sup.plan.strategy == Strategy::one_for_all ? 0 : index_of(child);
    for (size_t i = sup.children.size(); i-- > from;) {
      stop(*sup.children[i]);
      forget_if_temporary(*sup.children[i]);
    }
    for (size_t i = from; i < sup.children.size(); ++i) {
      if (!start(*sup.children[i])) return restart(*sup.children[i]);
    }
  }
};

// ---- Random trees and acts.

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<int>(values.size())));
  }

 private:
  std::mt19937_64 engine_;
};

Restart random_restart(Dice& dice) {
  return dice.one_of(
      {Restart::permanent, Restart::permanent, Restart::transient, Restart::temporary});
}

Plan random_plan(Dice& dice, int depth, int& next_id) {
  Plan plan;
  plan.is_supervisor = depth == 0 || (depth < 3 && dice.below(4) == 0);
  plan.id = (plan.is_supervisor ? "s" : "w") + std::to_string(next_id++);
  plan.restart = random_restart(dice);
  if (!plan.is_supervisor) return plan;
  plan.strategy =
      dice.one_of({Strategy::one_for_one, Strategy::one_for_all, Strategy::rest_for_one});
  plan.intensity = static_cast<uint32_t>(dice.below(5));
  for (int n = 1 + dice.below(4); n > 0; --n) {
    plan.children.push_back(random_plan(dice, depth + 1, next_id));
  }
  return plan;
}

using Troubles = std::map<std::string, std::shared_ptr<Trouble>>;

ChildSpec child_of(const Plan& plan, Troubles& troubles);

SupervisorSpec spec_of(const Plan& plan, Troubles& troubles) {
  SupervisorSpec spec{.strategy = plan.strategy, .intensity = plan.intensity};
  for (const Plan& child : plan.children) spec.children.push_back(child_of(child, troubles));
  return spec;
}
ChildSpec child_of(const Plan& plan, Troubles& troubles) {
  ChildOptions options{.name = plan.id, .restart = plan.restart};
  if (plan.is_supervisor) return supervisor(plan.id, spec_of(plan, troubles), options);
  auto& trouble = troubles[plan.id];
  if (trouble == nullptr) trouble = std::make_shared<Trouble>();
  return worker(plan.id, options, {.trouble = trouble});
}

std::string text_of(const Result<void>& result) {
  if (result.ok()) return "ok";
  std::string error = result.error().to_string();
  if (error.find("already_started") != std::string::npos) return "already_started";
  if (error == "already_present") return "present";
  return error.find("no luck") != std::string::npos ? "failed" : error;
}
Result<void> without_value(const Result<StartedChild>& result) {
  if (result.ok()) return {};
  return result.error();
}

void collect(Model::Node& node, std::vector<Model::Node*>& workers,
             std::vector<Model::Node*>& supervisors) {
  if (!node.up) return;
  (node.plan.is_supervisor ? supervisors : workers).push_back(&node);
  for (auto& child : node.children) collect(*child, workers, supervisors);
}

// ---- One run.

class Run {
 public:
  explicit Run(uint64_t seed) : dice_(seed), model_(random_plan(dice_, 0, next_id_)) {}

  Async<void> play(Simulator* clock) {
    trap_exit(true);
    auto started = co_await Supervisor::start_link(spec_of(model_.root_.plan, troubles_),
                                                   {.name = model_.root_.plan.id});
    require(started.ok() && model_.start(model_.root_), "the tree starts");
    model_.events.clear();
    co_await otp::sleep(1ms);
    while (co_await receive<Event>(after(0s))) {}
    for (int act = 0; act < 40 && model_.root_.up; ++act) {
      if (dice_.below(3) == 0) co_await otp::sleep(Duration(dice_.below(3000) * 1ms));
      make_trouble();
      model_.now = clock->now();
      co_await do_something();
      co_await otp::sleep(1ms);
      co_await compare();
    }
  }

 private:
  void make_trouble() {
    if (dice_.below(3) != 0 || troubles_.empty()) return;
    auto at = std::next(troubles_.begin(), dice_.below(static_cast<int>(troubles_.size())));
    at->second->failures = 1 + dice_.below(3);
  }

  Async<void> do_something() {
    for (auto& [id, trouble] : troubles_) model_.failures[id] = std::max(trouble->failures, 0);
    std::vector<Model::Node*> workers, supervisors;
    collect(model_.root_, workers, supervisors);
    if (!workers.empty() && dice_.below(3) != 0) {
      Model::Node& one =
          *workers[static_cast<size_t>(dice_.below(static_cast<int>(workers.size())))];
      end_worker(one);
      co_return;
    }
    Model::Node& sup =
        *supervisors[static_cast<size_t>(dice_.below(static_cast<int>(supervisors.size())))];
    co_await ask(sup);
  }

  void end_worker(Model::Node& one) {
    const std::string id = one.plan.id;
    const std::string reason = dice_.one_of({"crashed", "crashed", "normal", "shutdown"});
    act_ = id + " ends " + reason;
    if (reason == "crashed") crash(id);
    if (reason == "normal") supervision_testing::end(id, ExitReason::normal());
    if (reason == "shutdown") supervision_testing::end(id, ExitReason::shutdown());
    model_.end(one, reason);
  }

  Async<void> ask(Model::Node& sup) {
    SupervisorRef ref{Name<Supervisor>(sup.plan.id)};
    std::string id = "w0";
    if (!sup.children.empty()) {
      id = sup.children[static_cast<size_t>(dice_.below(static_cast<int>(sup.children.size())))]
               ->plan.id;
    }
    std::string wanted, got;
    switch (dice_.below(4)) {
      case 0:
        act_ = "terminate " + id;
        wanted = model_.terminate_child(sup, id);
        got = text_of(co_await Supervisor::terminate_child(ref, id));
        break;
      case 1:
        act_ = "restart " + id;
        wanted = model_.restart_child(sup, id);
        got = text_of(without_value(co_await Supervisor::restart_child(ref, id)));
        if (wanted == "failed" && got.find("failed_to_start_child") != std::string::npos) {
          got = "failed";
        }
        break;
      case 2:
        act_ = "delete " + id;
        wanted = model_.delete_child(sup, id);
        got = text_of(co_await Supervisor::delete_child(ref, id));
        break;
      default: {
        Plan plan;
        plan.id = "w" + std::to_string(next_id_++);
        plan.restart = random_restart(dice_);
        act_ = "start " + plan.id;
        wanted = model_.start_child(sup, plan);
        got = text_of(
            without_value(co_await Supervisor::start_child(ref, child_of(plan, troubles_))));
      }
    }
    require(got == wanted, act_ + ": expected " + wanted + ", got " + got);
  }

  Async<void> compare() {
    std::string wanted, got;
    for (const std::string& each : model_.events) wanted += each + "\n";
    while (auto event = co_await receive<Event>(after(0s))) got += event->text + "\n";
    require(got == wanted, act_ + "\nexpected:\n" + wanted + "got:\n" + got);
    model_.events.clear();
    require(pid_of(model_.root_.plan.id).operator bool() == model_.root_.up, act_ + ": the root");
    if (!model_.root_.up) co_return;
    TreeNode real = co_await tree(Name<Supervisor>(model_.root_.plan.id));
    require(draw(real) == draw(model_.root_),
            act_ + ": expected " + draw(model_.root_) + ", got " + draw(real));
  }

  static std::string draw(const TreeNode& node) {
    std::string text = (node.id.empty() ? node.name : node.id);
    text += node.state == TreeState::running ? "+" : "-";
    for (const TreeNode& child : node.children) text += "(" + draw(child) + ")";
    return text;
  }
  static std::string draw(const Model::Node& node) {
    std::string text = node.plan.id + (node.up ? "+" : "-");
    if (!node.up) return text;
    for (auto& child : node.children) text += "(" + draw(*child) + ")";
    return text;
  }

  int next_id_ = 0;
  Dice dice_;
  Model model_;
  Troubles troubles_;
  std::string act_;
};

}  // namespace

TEST_CASE("random trees behave as the model of OTP's rules says", "[supervisor][random]") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed);
    Run run(seed);
    simulator.run([](Run* one, Simulator* clock) -> Async<void> { co_await one->play(clock); },
                  &run, &simulator);
  }
}
