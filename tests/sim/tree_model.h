#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "otp/supervision/child_spec.h"

/// OTP's rules for supervisors as plain lists and recursion, written from OTP's manual, without a
/// line of the library's. Says what a tree does when something happens to it: which children start
/// and stop, in which order, how long it takes, and who is left.
namespace otp::sim {

/// One child as it is specified.
struct Plan {
  enum class Kind { worker, supervisor, dynamic };
  std::string id{};
  Kind kind = Kind::worker;
  Restart restart = Restart::permanent;
  bool significant = false;
  // Workers.
  Duration start_time{0};  // its init takes that long
  Duration stop_time{0};   // its terminate too
  bool stubborn = false;   // it never stops by itself
  Duration shutdown{std::chrono::seconds(5)};
  bool brutal_kill = false;
  // Supervisors.
  Strategy strategy = Strategy::one_for_one;
  AutoShutdown auto_shutdown = AutoShutdown::never;
  uint32_t intensity = 1;
  std::vector<Plan> children{};
};

/// Half a millisecond more than OTP's default, so that no restart lies on the edge of the window.
inline constexpr Duration kPeriod = std::chrono::microseconds(5'000'500);

class Model {
 public:
  struct Node {
    Plan plan;
    Node* parent = nullptr;
    bool up = false;
    std::vector<std::unique_ptr<Node>> children{};
    std::vector<Duration> restarts{};
  };
  /// What is seen, in order; what stands in one group may come in any order.
  using Events = std::vector<std::vector<std::string>>;

  explicit Model(Plan root) { root_.plan = std::move(root); }

  Node& root() { return root_; }
  Duration now{0};
  std::map<std::string, int> failures;  // starts of that worker that will fail
  std::map<std::string, int> ignores;   // and that will be ignored, first
  Events take_events() { return std::exchange(events_, {}); }

  enum class Started { ok, ignored, failed };
  Started start(Node& node);

  // What may happen to a worker, and to the whole.
  void end(Node& worker, const std::string& reason);
  void kill(Node& worker);
  void stop_root();
  void kill_root();

  // What a client asks for, and the answer.
  std::string terminate_child(Node& sup, const std::string& id);
  std::string restart_child(Node& sup, const std::string& id);
  std::string delete_child(Node& sup, const std::string& id);
  std::string start_child(Node& sup, const Plan& plan);

 private:
  static std::unique_ptr<Node> make(const Plan& plan, Node& parent);
  static Node* find_in(Node& sup, const std::string& id);
  static size_t index_of(const Node& child);
  static void erase(Node& child);
  static void forget_if_temporary(Node& child);

  void see(std::string event);
  void stop(Node& node);
  void stop_worker(Node& node);
  void stop_all(Node& sup);
  void stop_together(Node& sup);
  void orphan(Node& node);
  void ended(Node& child, bool abnormally);
  void give_up(Node& sup);
  bool shuts_down(Node& child) const;
  void restart(Node& child);

  Node root_;
  Events events_;
  bool together_ = false;  // events go into one group
};

}  // namespace otp::sim
