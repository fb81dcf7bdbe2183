#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "otp/base/atomic.h"
#include "otp/base/check.h"
#include "otp/runtime/letter.h"

/// Slots: where letters are delivered. A pid names a slot and one generation of its tenants.
///
/// A slot is always in one of four states, told by `head` and by who holds the *run right*:
///
///   asleep     head == null. Nobody holds the run right. Whoever pushes the first letter gets it.
///   scheduled  head != null, the slot's index lies in exactly one run queue. The queue holds the
///              right.
///   running    head != null, one thread runs the slot. That thread holds the right.
/// (A slot never sleeps with a letter it has not looked at.)
///
/// Independently of that a slot is *inhabited* (`body` is a process) or *vacant* (`body` is null).
/// A vacant slot still runs: its behaviour is the undertaker, which answers what must be answered.
///
/// Invariants
///  (S1) Exactly one holder of the run right at a time; only the holder touches `anchor`, `first`,
///       `body`.
///  (S2) head is the last letter pushed, or null when the slot sleeps. Senders only exchange it;
///       the holder only compares-and-swaps it from `anchor` to null, to fall asleep.
///  (S3) While awake, `anchor` is the last letter that the holder has looked at (null right after
///       waking, when `first` is the letter that woke the slot). Its memory stays until it is
///       passed.
///  (S4) Between a sender's exchange and its link to `next`, later letters cannot be seen. The
///       holder sees head != anchor then, and requeues the slot: it neither sleeps nor spins.
///  (S5) `state` is written by the owner of the vacant slot (who is about to give birth) and by the
///       run right's holder at death. Anybody may read it; the name table sets kNamed by
///       compare-and-swap, whoever arms a timer for the tenant kTimed.
///  (S6) A generation is never used twice. When the last one is used up, the slot is retired: it
///       stays vacant, and its undertaker answers for ever.
///  (S7) A letter carries the generation it is meant for. A tenant answers letters for older
///       generations like the undertaker. A birth is a letter too, pushed before anybody knows the
///       new pid: so every letter for a generation comes after its `start`.
///
/// Promise: what a sender did before push() is visible to the handler of that letter.
namespace otp::internal {

class Process;

inline constexpr uint64_t kAlive = 1;
inline constexpr uint64_t kNamed = 2;
inline constexpr uint64_t kTimed = 4;  // timers may hold a message for it

struct alignas(64) Slot {
  Atomic<uint64_t> state{0};      // generation << 32 | kAlive | kNamed | kTimed  (S5)
  Atomic<Letter*> head{nullptr};  // (S2)
  Letter* first = nullptr;        // written by the waker, before it schedules  (S1)
  Letter* anchor = nullptr;       // (S3)
  Process* body = nullptr;        // (S1)
  Atomic<uint32_t> backlog{0};    // letters in the inhabitant's queue, for senders' budgets; a hint
  Atomic<uint32_t> letters_max{0};  // the inhabitant's mailbox limit, 0 = none; only a hint here
  Atomic<uint32_t> core{0};         // 1 + the core that ran it last, 0 = none; a hint

  uint32_t generation() const { return static_cast<uint32_t>(state.load(relaxed) >> 32); }

  /// Publishes `letter`. True: the slot slept, and the caller now holds the run right and must
  /// schedule.
  bool push(Letter* letter) {
    // acq_rel: the holder that fell asleep released its state with the CAS in try_sleep (acquire
    // here), and the letter's contents must be visible to whoever walks to it (release, S2).
    Letter* previous = head.exchange(letter, acq_rel);
    if (previous == nullptr) {
      first = letter;
      return true;
    }
    // release: pairs with the acquire in next_letter (S4).
    previous->next.store(letter, release);
    return false;
  }

  /// The next letter that the holder has not looked at, or null; it becomes the anchor, and the
  /// anchor before it is freed when it has been consumed.
  [[gnu::always_inline]] Letter* next_letter() {
    Letter* letter;
    if (anchor == nullptr) {
      letter = first;
    } else {
      letter = anchor->next.load(acquire);  // pairs with the release in push (S4)
      if (letter == nullptr) return nullptr;
      if (anchor->flags & kConsumed) free_letter(anchor);
    }
    anchor = letter;
    return letter;
  }

  /// Gives up the run right if every letter has been looked at. After true the caller must not
  /// touch the slot nor the process. REQUIRES: anchor != null.
  [[gnu::always_inline]] bool try_sleep() {
    Letter* const last = anchor;
    if (last->next.load(relaxed) != nullptr) return false;
    const bool consumed = last->flags & kConsumed;
    anchor = nullptr;
    Letter* expected = last;
    // acq_rel: releases what the holder did to the next waker's exchange in push. Sender and holder
    // meet on this one variable, so one of the two comes first and no letter is slept through (S2).
    if (head.compare_exchange_strong(expected, nullptr, acq_rel, relaxed)) {
      if (consumed) free_letter(last);
      return true;
    }
    anchor = last;
    return false;
  }
};

/// All slots of a System: one reserved range of addresses, so that an index is an address and no
/// lookup can fail. Pages are used as slots are; the table is never returned while the System
/// lives.
class SlotTable {
 public:
  explicit SlotTable(uint32_t slots_max) : slots_max_(slots_max) {
    bytes_ = static_cast<size_t>(slots_max) * sizeof(Slot);
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    OTP_CHECK(memory != MAP_FAILED, "no address space for %u slots", slots_max);
    // Zeroed pages are valid slots: all members' initial values are zero.
    slots_ = static_cast<Slot*>(memory);
  }
  SlotTable(const SlotTable&) = delete;
  SlotTable& operator=(const SlotTable&) = delete;
  ~SlotTable() { ::munmap(slots_, bytes_); }

  Slot& operator[](uint32_t index) { return slots_[index]; }
  uint32_t slots_max() const { return slots_max_; }

 private:
  Slot* slots_;
  size_t bytes_;
  uint32_t slots_max_;
};

}  // namespace otp::internal
