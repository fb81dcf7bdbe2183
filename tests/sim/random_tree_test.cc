// Random supervision trees against a model of OTP's rules that shares no code with the library.
//
// A seed makes a tree (strategies, restart types, intensities, significant children, dynamic
// supervisors, workers that are slow, stuck or killed at once) and a series of acts: a worker ends
// or is killed, a client asks for something, some starts will fail or be ignored, time passes.
// After each act the order of starts and stops, who lives, and what the client was told must be
// what the model says; at the end the whole is stopped, killed or gives up, and nothing may be
// left. The seed also drives the scheduler, so every act meets another interleaving.
//
//   bazel test //tests/sim:random_tree_test --test_env=OTP_ROUNDS=1000000 --test_timeout=36000
//   bazel test //tests/sim:random_tree_test --test_env=OTP_SEED=17

#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <random>
#include <string_view>

#include "bazel/replay.h"
#include "otp/base/compiler.h"
#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/testing/sup_fixture.h"
#include "otp/supervision/tree.h"
#include "tests/sim/tree_model.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;
using sim::Model;
using sim::Plan;
using Kind = sim::Plan::Kind;

namespace {

#ifdef OTP_SANITIZED
constexpr uint64_t kSeeds = 300;  // sanitizers are slow
#else
constexpr uint64_t kSeeds = 10'000;
#endif

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

void make_worker(Dice& dice, Plan& plan) {
  if (dice.below(6) == 0) plan.start_time = (1 + dice.below(40)) * 1ms;
  if (dice.below(5) == 0) plan.stop_time = (1 + dice.below(300)) * 1ms;
  plan.stubborn = dice.below(10) == 0;
  plan.brutal_kill = dice.below(8) == 0;
  if (dice.below(4) == 0) plan.shutdown = 100ms + 500us;  // some are slower than that
}

Plan random_plan(Dice& dice, int depth, int& next_id, bool may_be_significant) {
  Plan plan;
  if (depth == 0 || (depth < 3 && dice.below(4) == 0)) plan.kind = Kind::supervisor;
  if (depth > 0 && dice.below(8) == 0) plan.kind = Kind::dynamic;
  const char* letter = plan.kind == Kind::worker ? "w" : plan.kind == Kind::dynamic ? "d" : "s";
  plan.id = letter + std::to_string(next_id++);
  plan.restart = random_restart(dice);
  plan.significant = may_be_significant && plan.restart != Restart::permanent && dice.below(2) == 0;
  if (plan.kind == Kind::worker) {
    make_worker(dice, plan);
    return plan;
  }
  plan.intensity = static_cast<uint32_t>(dice.below(5));
  if (plan.kind == Kind::dynamic) return plan;
  plan.strategy =
      dice.one_of({Strategy::one_for_one, Strategy::one_for_all, Strategy::rest_for_one});
  plan.auto_shutdown = dice.one_of({AutoShutdown::never, AutoShutdown::never,
                                    AutoShutdown::any_significant, AutoShutdown::all_significant});
  const bool significant = plan.auto_shutdown != AutoShutdown::never;
  for (int n = 1 + dice.below(4); n > 0; --n) {
    plan.children.push_back(random_plan(dice, depth + 1, next_id, significant));
  }
  return plan;
}

using Troubles = std::map<std::string, std::shared_ptr<Trouble>>;

ChildSpec child_of(const Plan& plan, Troubles& troubles);

SupervisorSpec spec_of(const Plan& plan, Troubles& troubles) {
  SupervisorSpec spec{.strategy = plan.strategy,
                      .intensity = plan.intensity,
                      .period = sim::kPeriod,
                      .auto_shutdown = plan.auto_shutdown};
  for (const Plan& child : plan.children) spec.children.push_back(child_of(child, troubles));
  return spec;
}
ChildSpec child_of(const Plan& plan, Troubles& troubles) {
  ChildOptions options{.name = plan.id, .restart = plan.restart, .significant = plan.significant};
  if (plan.kind == Kind::supervisor) {
    return supervisor(plan.id, spec_of(plan, troubles), options);
  }
  if (plan.kind == Kind::dynamic) {
    DynamicSupervisorSpec spec{.intensity = plan.intensity, .period = sim::kPeriod};
    return dynamic_supervisor(plan.id, spec, options);
  }
  auto& trouble = troubles[plan.id];
  if (trouble == nullptr) trouble = std::make_shared<Trouble>();
  trouble->start_time = plan.start_time;
  options.shutdown = plan.shutdown;
  if (plan.brutal_kill) options.shutdown = Shutdown::brutal_kill;
  return worker(plan.id, options,
                {.stop_time = plan.stop_time, .stubborn = plan.stubborn, .trouble = trouble});
}

std::string text_of(const Result<void>& result) {
  if (result.ok()) return "ok";
  std::string error = result.error().to_string();
  if (error.find("already_started") != std::string::npos) return "already_started";
  if (error == "already_present") return "present";
  return error.find("no luck") != std::string::npos ? "failed" : error;
}
Result<void> without_value(const Result<StartedChild>& result) {
  if (result.ok() || result.ignored()) return {};
  return result.error();
}

void collect(Model::Node& node, std::vector<Model::Node*>& workers,
             std::vector<Model::Node*>& supervisors) {
  if (!node.up) return;
  (node.plan.kind == Kind::worker ? workers : supervisors).push_back(&node);
  for (auto& child : node.children) collect(*child, workers, supervisors);
}

// ---- One run.

class Run {
 public:
  explicit Run(uint64_t seed) : dice_(seed), model_(random_plan(dice_, 0, next_id_, false)) {}

  Async<void> play(Simulator* clock) {
    trap_exit(true);
    model_.now = clock->now();
    auto started = co_await Supervisor::start_link(spec_of(model_.root().plan, troubles_),
                                                   {.name = model_.root().plan.id});
    require(started.ok() && model_.start(model_.root()) == Model::Started::ok, "the tree starts");
    act_ = "start of the tree";
    co_await compare(clock);
    for (int act = 0; act < 40 && model_.root().up; ++act) {
      if (dice_.below(3) == 0) co_await otp::sleep(Duration(dice_.below(3000) * 1ms));
      make_trouble();
      model_.now = clock->now();
      co_await do_something();
      co_await compare(clock);
    }
    if (model_.root().up) {
      model_.now = clock->now();
      const Pid root = pid_of(model_.root().plan.id);
      end_all(root);
      co_await compare(clock);
      require(!is_alive(root), act_ + ": the root lives");
    }
    auto& system = *internal::env().system;
    require(system.process_count() == 1,
            act_ + ": " + std::to_string(system.process_count() - 1) + " processes are left");
    require(system.names().size() == 0, act_ + ": names are left");
    while (co_await receive<ExitMessage>(after(0s))) {}
  }

 private:
  template <class T>
  T& any_of(const std::vector<T*>& all) {
    return *all[static_cast<size_t>(dice_.below(static_cast<int>(all.size())))];
  }

  void make_trouble() {
    if (dice_.below(3) != 0 || troubles_.empty()) return;
    auto at = std::next(troubles_.begin(), dice_.below(static_cast<int>(troubles_.size())));
    if (dice_.below(5) == 0) {
      at->second->ignores = 1;
    } else {
      at->second->failures = 1 + dice_.below(3);
    }
  }

  Async<void> do_something() {
    for (auto& [id, trouble] : troubles_) {
      model_.failures[id] = trouble->failures = std::max(trouble->failures, 0);
      model_.ignores[id] = trouble->ignores = std::max(trouble->ignores, 0);
    }
    std::vector<Model::Node*> workers, supervisors;
    collect(model_.root(), workers, supervisors);
    if (!workers.empty() && dice_.below(3) != 0) {
      end_worker(any_of(workers));
      co_return;
    }
    co_await ask(any_of(supervisors));
  }

  void end_worker(Model::Node& one) {
    const std::string id = one.plan.id;
    if (one.plan.stubborn || dice_.below(4) == 0) {
      act_ = id + " is killed";
      otp::exit(pid_of(id), ExitReason::kill());
      return model_.kill(one);
    }
    const std::string reason = dice_.one_of({"crashed", "crashed", "normal", "shutdown"});
    act_ = id + " ends " + reason;
    if (reason == "crashed") crash(id);
    if (reason == "normal") supervision_testing::end(id, ExitReason::normal());
    if (reason == "shutdown") supervision_testing::end(id, ExitReason::shutdown());
    model_.end(one, reason);
  }

  void end_all(Pid root) {
    auto& children = model_.root().children;
    const bool stuck = std::any_of(children.begin(), children.end(),
                                   [](auto& each) { return each->up && each->plan.stubborn; });
    if (!stuck && dice_.below(3) == 0) {
      act_ = "the root is killed";
      otp::exit(root, ExitReason::kill());
      return model_.kill_root();
    }
    act_ = "the root is stopped";
    otp::exit(root, dice_.below(2) == 0 ? ExitReason::shutdown() : ExitReason::atom("bad"));
    model_.stop_root();
  }

  Async<void> ask(Model::Node& sup) {
    std::string id = "w0";
    if (!sup.children.empty()) {
      const int which = dice_.below(static_cast<int>(sup.children.size()));
      id = sup.children[static_cast<size_t>(which)]->plan.id;
    }
    std::string wanted, got;
    if (sup.plan.kind == Kind::dynamic) {
      co_await ask_dynamic(sup, id, &wanted, &got);
    } else {
      co_await ask_static(sup, id, &wanted, &got);
    }
    require(got == wanted, act_ + ": expected " + wanted + ", got " + got);
  }

  Plan new_worker() {
    Plan plan;
    plan.id = "w" + std::to_string(next_id_++);
    plan.restart = random_restart(dice_);
    make_worker(dice_, plan);
    return plan;
  }

  Async<void> ask_static(Model::Node& sup, std::string id, std::string* wanted, std::string* got) {
    SupervisorRef ref{Name<Supervisor>(sup.plan.id)};
    switch (dice_.below(4)) {
      case 0:
        act_ = "terminate " + id;
        *wanted = model_.terminate_child(sup, id);
        *got = text_of(co_await Supervisor::terminate_child(ref, id));
        break;
      case 1:
        act_ = "restart " + id;
        *wanted = model_.restart_child(sup, id);
        *got = text_of(without_value(co_await Supervisor::restart_child(ref, id)));
        if (*wanted == "failed" && got->find("failed_to_start_child") != std::string::npos) {
          *got = "failed";
        }
        break;
      case 2:
        act_ = "delete " + id;
        *wanted = model_.delete_child(sup, id);
        *got = text_of(co_await Supervisor::delete_child(ref, id));
        break;
      default: {
        const Plan plan = new_worker();
        act_ = "start " + plan.id;
        *wanted = model_.start_child(sup, plan);
        ChildSpec spec = child_of(plan, troubles_);
        *got = text_of(without_value(co_await Supervisor::start_child(ref, std::move(spec))));
      }
    }
  }

  Async<void> ask_dynamic(Model::Node& sup, std::string id, std::string* wanted, std::string* got) {
    DynamicSupervisorRef ref{Name<DynamicSupervisor>(sup.plan.id)};
    if (dice_.below(4) == 0) {
      act_ = "terminate " + id + " of " + sup.plan.id;
      const Pid child = pid_of(id);
      *wanted = model_.terminate_child(sup, id);
      *got = text_of(co_await DynamicSupervisor::terminate_child(ref, child));
      co_return;
    }
    const Plan plan = new_worker();
    act_ = "start " + plan.id + " of " + sup.plan.id;
    *wanted = model_.start_child(sup, plan);
    ChildSpec spec = child_of(plan, troubles_);
    *got = text_of(without_value(co_await DynamicSupervisor::start_child(ref, std::move(spec))));
  }

  // Waits as long as the model says that it takes, and compares what was seen and who is left.
  Async<void> compare(Simulator* clock) {
    const Duration left = model_.now - clock->now();
    co_await otp::sleep((left > Duration(0) ? left : Duration(0)) + 1ms);
    std::string wanted, got;
    for (auto& group : model_.take_events()) {
      std::sort(group.begin(), group.end());
      std::vector<std::string> seen;
      for (size_t i = 0; i < group.size(); ++i) {
        auto event = co_await receive<Event>(after(0s));
        seen.push_back(event ? event->text : "nothing");
      }
      std::sort(seen.begin(), seen.end());
      for (const std::string& each : group) wanted += each + "\n";
      for (const std::string& each : seen) got += each + "\n";
    }
    while (auto event = co_await receive<Event>(after(0s))) got += event->text + "\n";
    require(got == wanted, act_ + "\nexpected:\n" + wanted + "got:\n" + got);
    require(static_cast<bool>(pid_of(model_.root().plan.id)) == model_.root().up,
            act_ + ": the root");
    if (!model_.root().up) co_return;
    TreeNode real = co_await tree(Name<Supervisor>(model_.root().plan.id));
    require(draw(real) == draw(model_.root()),
            act_ + ": expected " + draw(model_.root()) + ", got " + draw(real));
  }

  static std::string join(bool sorted, std::vector<std::string> parts) {
    if (sorted) std::sort(parts.begin(), parts.end());
    std::string text;
    for (const std::string& each : parts) text += "(" + each + ")";
    return text;
  }
  static std::string draw(const TreeNode& node) {
    const std::string name = node.id.empty() ? node.name : node.id;
    std::vector<std::string> parts;
    for (const TreeNode& child : node.children) parts.push_back(draw(child));
    return name + (node.state == TreeState::running ? "+" : "-") +
           join(name.starts_with("d"), std::move(parts));
  }
  static std::string draw(const Model::Node& node) {
    if (!node.up) return node.plan.id + "-";
    std::vector<std::string> parts;
    for (auto& child : node.children) parts.push_back(draw(*child));
    return node.plan.id + "+" + join(node.plan.kind == Kind::dynamic, std::move(parts));
  }

  int next_id_ = 0;
  Dice dice_;
  Model model_;
  Troubles troubles_;
  std::string act_;
};

Async<void> play(Run* run, Simulator* clock) { co_await run->play(clock); }

void run_seed(uint64_t seed) {
  testing::Replay replay(seed);
  Simulator simulator(seed);
  Run run(seed);
  try {
    simulator.run(play, &run, &simulator);
  } catch (const std::exception& error) {
    FAIL("seed " << seed << ": " << error.what());
  }
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == 0) return otherwise;
  const std::string_view digits(text);
  uint64_t value = 0;
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  INFO(variable << "=" << text);
  REQUIRE(result.ec == std::errc());
  return value;
}

}  // namespace

TEST_CASE("random trees behave as the model of OTP's rules says", "[supervisor][random]") {
  if (const uint64_t only = number_from("OTP_SEED", 0)) return run_seed(only);
  const uint64_t seeds = number_from("OTP_ROUNDS", kSeeds);
  for (uint64_t seed = 1; seed <= seeds; ++seed) run_seed(seed);
  SUCCEED("all seeds");
}

#ifndef OTP_SANITIZED
TEST_CASE("random trees leave no byte", "[supervisor][random]") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    run_seed(seed);
    // What is made once (names of types, room that vectors keep) is made sooner or later; a leak
    // grows each time.
    bool flat = false;
    for (int look = 0; look < 4 && !flat; ++look) {
      const size_t before = ::mallinfo2().uordblks;
      run_seed(seed);
      flat = ::mallinfo2().uordblks == before;
    }
    INFO("seed " << seed);
    CHECK(flat);
  }
}
#endif
