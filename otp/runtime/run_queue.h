#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "otp/base/atomic.h"

/// A core's queue of scheduled slots: a ring that its core fills and empties and idle cores may
/// steal from, with a LIFO place in front for the slot that was woken last.
///
/// Invariants
///  (Q1) Only the core's holder pushes: it alone writes tail_. Anybody takes, by CAS on head_,
///  unless the queue is exclusive. The LIFO place is the holder's alone: what was woken last stays
///  with its waker, and a hop costs no atomic operation here. (Q2) Entries in [head_, tail_) are
///  valid; an entry is read before the CAS that takes it and is
///       worthless if that CAS fails.
///  (Q3) A slot index stands in one queue at most (it carries the run right, S1).
namespace otp::internal {

class RunQueue {
 public:
  static constexpr uint32_t kCapacity = 1024;

  /// `exclusive`: there is no other core that could steal, so taking needs no atomic operation.
  explicit RunQueue(bool exclusive) : exclusive_(exclusive) {}

  /// False: full; the caller puts half of it elsewhere (take_half) and tries again.
  bool push(uint32_t slot) {
    uint32_t tail = tail_.load(relaxed);
    // acquire: pairs with the release half of the takers' CAS, so that an entry is overwritten only
    // after it was read (Q2).
    if (tail - head_.load(acquire) >= kCapacity) return false;
    ring_[tail % kCapacity].store(slot, relaxed);
    tail_.store(tail + 1, release);  // pairs with the acquire in pop and steal (Q2)
    return true;
  }

  /// The oldest entry, or 0 (no slot has index 0).
  uint32_t pop() {
    uint32_t head = head_.load(relaxed);
    for (;;) {
      if (head == tail_.load(relaxed)) return 0;  // own writes: relaxed is enough (Q1)
      uint32_t slot = ring_[head % kCapacity].load(relaxed);
      if (exclusive_) {
        head_.store(head + 1, relaxed);  // nobody else reads or writes it (Q1)
        return slot;
      }
      // acq_rel: release for push's acquire (Q2); acquire as a thief may have moved head_.
      if (head_.compare_exchange_weak(head, head + 1, acq_rel, relaxed)) return slot;
    }
  }

  /// Takes up to half of the entries (at least one), oldest first; returns how many.
  uint32_t take_half(std::array<uint32_t, kCapacity / 2>& out) {
    uint32_t head = head_.load(acquire);
    for (;;) {
      uint32_t size = tail_.load(acquire) - head;   // acquire: pairs with push
      if (size == 0 || size > kCapacity) return 0;  // head_ moved on between the two loads
      uint32_t count = size - size / 2;
      if (count > kCapacity / 2) count = kCapacity / 2;
      for (uint32_t i = 0; i < count; ++i) {
        out[i] = ring_[(head + i) % kCapacity].load(relaxed);
      }
      if (head_.compare_exchange_strong(head, head + count, acq_rel, acquire)) return count;
    }
  }

  bool empty() const { return head_.load(relaxed) == tail_.load(relaxed); }
  uint32_t size() const { return tail_.load(relaxed) - head_.load(relaxed); }

  /// Puts `slot` first and returns what stood there, or 0. Core's holder only, as the next two.
  uint32_t exchange_lifo(uint32_t slot) { return std::exchange(lifo_, slot); }
  uint32_t take_lifo() { return std::exchange(lifo_, 0); }
  bool has_lifo() const { return lifo_ != 0; }

 private:
  alignas(64) Atomic<uint32_t> head_{0};
  alignas(64) Atomic<uint32_t> tail_{0};
  uint32_t lifo_ = 0;  // (Q1)
  const bool exclusive_;
  alignas(64) std::array<Atomic<uint32_t>, kCapacity> ring_{};
};

}  // namespace otp::internal
