#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>

#include "otp/base/id_map.h"
#include "otp/supervision/child_info.h"
#include "otp/supervision/internal/backoff.h"

namespace otp::internal {

/// One child of a supervisor: its specification and where it is in its life.
struct Child {
  explicit Child(ChildSpec child_spec) : spec(std::move(child_spec)) {}

  const ChildSpec spec;
  ChildState state = ChildState::stopped;
  Pid pid{};              // the process; of one that restarts, the one that ended
  uint64_t restarts = 0;  // since it was added
  uint64_t attempt = 0;   // a planned restart holds only while this is unchanged
  BackoffState backoff{};
  ExitReason failure{};  // of the last start, while it restarts
  Child* previous = nullptr;
  Child* next = nullptr;
};

/// The children of a supervisor in start order, found by id and by pid in constant time.
///
/// Invariants: (C1) by_id_ has every child. (C2) by_pid_ has exactly those whose state is running
/// and whose pid is not nobody.
class ChildList {
 public:
  ChildList() = default;
  ChildList(const ChildList&) = delete;
  ChildList& operator=(const ChildList&) = delete;
  ~ChildList() {
    while (first_ != nullptr) delete std::exchange(first_, first_->next);
  }

  Child* first() const { return first_; }
  Child* last() const { return last_; }
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return by_id_.size(); }

  Child* find(std::string_view id) const {
    auto at = by_id_.find(id);
    return at == by_id_.end() ? nullptr : at->second;
  }
  Child* find(Pid pid) {
    Child** at = by_pid_.find(pid.id);
    return at == nullptr ? nullptr : *at;
  }

  /// REQUIRES: no child has this id.
  Child& append(ChildSpec spec) {
    auto* child = new Child(std::move(spec));
    child->previous = last_;
    (last_ == nullptr ? first_ : last_->next) = child;
    last_ = child;
    by_id_.emplace(child->spec.id, child);
    return *child;
  }
  void remove(Child& child) {
    forget_pid(child);
    by_id_.erase(child.spec.id);
    (child.previous == nullptr ? first_ : child.previous->next) = child.next;
    (child.next == nullptr ? last_ : child.next->previous) = child.previous;
    delete &child;
  }

  void set_running(Child& child, Pid pid) {
    forget_pid(child);
    child.state = pid ? ChildState::running : ChildState::stopped;  // no pid: its start was ignored
    child.pid = pid;
    if (pid) *by_pid_.insert(pid.id).first = &child;
  }
  void set_stopped(Child& child) {
    forget_pid(child);
    child.state = ChildState::stopped;
    child.pid = Pid();
    ++child.attempt;
  }
  void set_restarting(Child& child) {
    forget_pid(child);
    child.state = ChildState::restarting;
    ++child.attempt;
  }

 private:
  void forget_pid(Child& child) {
    if (child.state == ChildState::running) by_pid_.erase(child.pid.id);
  }

  Child* first_ = nullptr;
  Child* last_ = nullptr;
  std::unordered_map<std::string_view, Child*> by_id_;  // the keys are the children's own ids
  IdMap<Child*> by_pid_;
};

}  // namespace otp::internal
