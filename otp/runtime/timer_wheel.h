#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "otp/base/id_map.h"
#include "otp/runtime/letter.h"

/// A hierarchical timing wheel: arm and cancel in constant time, cancelled timers are gone at once.
///
/// Deadlines are nanoseconds of the System's clock. A timer never fires early, and timers whose
/// deadlines lie in different ticks (16.4 µs) fire in the order of their deadlines. Any deadline
/// that fits int64 is kept exactly: there is no longest timer.
///
/// Threads: none of its own; each core guards its wheel by a mutex (see core.h), as other cores
/// cancel timers that were armed here.
namespace otp::internal {

struct TimerNode {
  TimerNode* previous = nullptr;
  TimerNode* next = nullptr;
  int64_t deadline = 0;
  Letter* letter = nullptr;  // what fires; owned
  uint64_t target = 0;       // pid id of the receiver
  uint32_t generation = 0;   // of this node (28 bits): a handle to an older one is stale
  uint32_t place = 0;        // level * 64 + slot, +1; 0 = not armed
  uint32_t index = 0;        // of this node among all, constant
  // Of the timers that go with one target, as indices + 1; 0: none, or not among them.
  uint32_t next_of_target = 0;
  uint32_t previous_of_target = 0;
  bool goes_with_target = false;
};

/// Names a timer that may have fired meanwhile. 0 = none.
using TimerId = uint64_t;

class TimerWheel {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  explicit TimerWheel(int64_t now) : tick_(now >> kTickShift) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;
  ~TimerWheel();

  /// Takes `letter`, to be delivered to `target` at `deadline` or soon after. Never 0; below 2^56.
  /// `goes_with_target`: cancel_all(target) cancels it.
  TimerId arm(int64_t deadline, uint64_t target, Letter* letter, bool goes_with_target = false);

  /// Removes the timer and frees its letter. Returns its deadline, or kNever if it fired or was
  /// cancelled.
  int64_t cancel(TimerId timer);
  /// Cancels every timer that goes with this target.
  void cancel_all(uint64_t target);
  /// The deadline of a timer that is armed, else kNever.
  int64_t deadline(TimerId timer) const;

  /// The earliest time at which expire() has something to do, or kNever. May be a little too early.
  int64_t next_event() const;

  /// Unlinks every timer whose deadline is at most `now` and calls fire(target, letter), which
  /// takes the letter, in the order of their ticks.
  template <class F>
  void expire(int64_t now, F fire) {
    for (;;) {
      TimerNode* node = pop_due(now);
      if (node == nullptr) return;
      Letter* letter = node->letter;
      uint64_t target = node->target;
      release(node);
      fire(target, letter);
    }
  }

  size_t armed() const { return armed_; }
  /// Calls fn(target, letter, goes_with_target) for each timer that is armed.
  template <class F>
  void for_each(F fn) const {
    for (const TimerNode* list : lists_) {
      for (const TimerNode* node = list; node != nullptr; node = node->next) {
        fn(node->target, *node->letter, node->goes_with_target);
      }
    }
  }

 private:
  static constexpr int kTickShift = 14;
  static constexpr int kSlotBits = 6;
  static constexpr int kSlots = 1 << kSlotBits;
  static constexpr int kLevels = 9;  // 9 * 6 + 14 bits hold any int64 deadline
  static constexpr uint32_t kChunk = 1024;

  TimerNode* node_of(TimerId timer) const;
  TimerNode* acquire_node();
  void release(TimerNode* node);
  void insert(TimerNode* node);
  void unlink(TimerNode* node);
  TimerNode* node_at(uint32_t index) const { return &chunks_[index / kChunk][index % kChunk]; }
  void tie_to_target(TimerNode* node);
  void untie_from_target(TimerNode* node);
  TimerNode* pop_due(int64_t now);
  bool advance(int64_t now_tick);
  int64_t slot_start(int level, int slot) const;

  int64_t tick_;  // every timer of an earlier tick has fired
  size_t armed_ = 0;
  std::array<uint64_t, kLevels> occupied_{};  // a bit for each slot that is not empty
  std::array<TimerNode*, kLevels * kSlots> lists_{};
  std::vector<TimerNode*>
      chunks_;  // nodes are never returned, so a stale handle is safe to look at
  std::vector<TimerNode*> free_;
  IdMap<uint32_t> of_target_;  // by target: the first of the timers that go with it, index + 1
};

}  // namespace otp::internal
