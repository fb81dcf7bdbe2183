#include "otp/runtime/timer_wheel.h"

#include <bit>

#include "otp/base/check.h"

namespace otp::internal {

TimerWheel::~TimerWheel() {
  for (TimerNode* list : lists_) {
    for (TimerNode* node = list; node != nullptr; node = node->next) free_letter(node->letter);
  }
  for (TimerNode* chunk : chunks_) delete[] chunk;
}

TimerNode* TimerWheel::node_of(TimerId timer) const {
  uint32_t index = static_cast<uint32_t>(timer & 0xFFFFFFF);
  uint32_t generation = static_cast<uint32_t>(timer >> 28);
  if (index / kChunk >= chunks_.size()) return nullptr;
  TimerNode* node = node_at(index);
  return node->generation == generation && node->place != 0 ? node : nullptr;
}

TimerNode* TimerWheel::acquire_node() {
  if (free_.empty()) {
    uint32_t base = static_cast<uint32_t>(chunks_.size()) * kChunk;
    OTP_CHECK(base < (1u << 28), "%zu timers armed at once", armed_);
    TimerNode* chunk = new TimerNode[kChunk];
    chunks_.push_back(chunk);
    for (uint32_t i = kChunk; i > 0; --i) {
      chunk[i - 1].index = base + i - 1;
      free_.push_back(&chunk[i - 1]);
    }
  }
  TimerNode* node = free_.back();
  free_.pop_back();
  // A handle is mistaken for another timer only if it is kept over 2^28 reuses of one node.
  node->generation = node->generation == 0xFFFFFFF ? 1 : node->generation + 1;
  return node;
}

TimerId TimerWheel::arm(int64_t deadline, uint64_t target, Letter* letter, bool goes_with_target) {
  TimerNode* node = acquire_node();
  node->deadline = deadline;
  node->letter = letter;
  node->target = target;
  insert(node);
  if (goes_with_target) tie_to_target(node);
  ++armed_;
  return static_cast<uint64_t>(node->generation) << 28 | node->index;
}

void TimerWheel::insert(TimerNode* node) {
  int64_t tick = node->deadline >> kTickShift;
  if (tick < tick_) tick = tick_;
  uint64_t difference = static_cast<uint64_t>(tick) ^ static_cast<uint64_t>(tick_);
  int level = difference == 0 ? 0 : (63 - std::countl_zero(difference)) / kSlotBits;
  int slot = static_cast<int>((tick >> (level * kSlotBits)) & (kSlots - 1));
  TimerNode*& list = lists_[static_cast<size_t>(level * kSlots + slot)];
  node->previous = nullptr;
  node->next = list;
  if (list != nullptr) list->previous = node;
  list = node;
  node->place = static_cast<uint32_t>(level * kSlots + slot + 1);
  occupied_[static_cast<size_t>(level)] |= 1ull << slot;
}

void TimerWheel::unlink(TimerNode* node) {
  uint32_t place = node->place - 1;
  if (node->previous != nullptr) {
    node->previous->next = node->next;
  } else {
    lists_[place] = node->next;
    if (node->next == nullptr) occupied_[place / kSlots] &= ~(1ull << (place % kSlots));
  }
  if (node->next != nullptr) node->next->previous = node->previous;
  node->place = 0;
}

void TimerWheel::release(TimerNode* node) {
  --armed_;
  if (node->goes_with_target) untie_from_target(node);
  node->letter = nullptr;
  free_.push_back(node);
}

int64_t TimerWheel::cancel(TimerId timer) {
  TimerNode* node = node_of(timer);
  if (node == nullptr) return kNever;
  int64_t deadline = node->deadline;
  unlink(node);
  free_letter(node->letter);
  release(node);
  return deadline;
}

void TimerWheel::tie_to_target(TimerNode* node) {
  uint32_t& first = *of_target_.insert(node->target).first;
  node->goes_with_target = true;
  node->previous_of_target = 0;
  node->next_of_target = first;
  if (first != 0) node_at(first - 1)->previous_of_target = node->index + 1;
  first = node->index + 1;
}

void TimerWheel::untie_from_target(TimerNode* node) {
  const uint32_t next = node->next_of_target;
  const uint32_t previous = node->previous_of_target;
  node->goes_with_target = false;
  if (next != 0) node_at(next - 1)->previous_of_target = previous;
  if (previous != 0) {
    node_at(previous - 1)->next_of_target = next;
  } else if (next != 0) {
    *of_target_.find(node->target) = next;
  } else {
    of_target_.erase(node->target);
  }
}

void TimerWheel::cancel_all(uint64_t target) {
  while (uint32_t* first = of_target_.find(target)) {
    TimerNode* node = node_at(*first - 1);
    unlink(node);
    free_letter(node->letter);
    release(node);
  }
}

int64_t TimerWheel::deadline(TimerId timer) const {
  TimerNode* node = node_of(timer);
  return node == nullptr ? kNever : node->deadline;
}

// The first tick of a slot: the current tick with this level's digit replaced and all lower ones
// zero.
int64_t TimerWheel::slot_start(int level, int slot) const {
  int shift = level * kSlotBits;
  uint64_t above = shift + kSlotBits >= 63
                       ? 0
                       : static_cast<uint64_t>(tick_) >> (shift + kSlotBits) << (shift + kSlotBits);
  return static_cast<int64_t>(above | static_cast<uint64_t>(slot) << shift);
}

int64_t TimerWheel::next_event() const {
  if (armed_ == 0) return kNever;
  for (int level = 0; level < kLevels; ++level) {
    uint64_t bits = occupied_[static_cast<size_t>(level)];
    if (bits == 0) continue;
    int slot = std::countr_zero(bits);
    if (level > 0) return slot_start(level, slot) << kTickShift;
    int64_t earliest = kNever;
    TimerNode* node = lists_[static_cast<size_t>(slot)];
    for (; node != nullptr; node = node->next) {
      if (node->deadline < earliest) earliest = node->deadline;
    }
    return earliest;
  }
  return kNever;
}

// Moves to the next slot that holds anything, up to now_tick; spreads a slot of a higher level over
// the lower ones. False: nothing is left that could be due.
bool TimerWheel::advance(int64_t now_tick) {
  for (int level = 1; level < kLevels; ++level) {
    uint64_t bits = occupied_[static_cast<size_t>(level)];
    if (bits == 0) continue;
    int slot = std::countr_zero(bits);
    int64_t start = slot_start(level, slot);
    if (start > now_tick) return false;
    tick_ = start;
    size_t place = static_cast<size_t>(level * kSlots + slot);
    TimerNode* node = lists_[place];
    lists_[place] = nullptr;
    occupied_[static_cast<size_t>(level)] &= ~(1ull << slot);
    while (node != nullptr) {
      TimerNode* next = node->next;
      insert(node);
      node = next;
    }
    return true;
  }
  return false;
}

TimerNode* TimerWheel::pop_due(int64_t now) {
  int64_t now_tick = now >> kTickShift;
  if (armed_ == 0) {
    if (now_tick > tick_) tick_ = now_tick;
    return nullptr;
  }
  for (;;) {
    uint64_t bits = occupied_[0];
    if (bits == 0) {
      if (!advance(now_tick)) return nullptr;
      continue;
    }
    int slot = std::countr_zero(bits);
    int64_t tick = slot_start(0, slot);
    if (tick > now_tick) return nullptr;
    tick_ = tick;
    TimerNode* earliest = nullptr;
    for (TimerNode* node = lists_[static_cast<size_t>(slot)]; node; node = node->next) {
      if (node->deadline > now) continue;
      if (tick < now_tick) {  // the whole tick is due: no search
        earliest = node;
        break;
      }
      if (earliest == nullptr || node->deadline < earliest->deadline) earliest = node;
    }
    if (earliest == nullptr) return nullptr;  // this tick is now, and the rest of it is not due yet
    unlink(earliest);
    return earliest;
  }
}

}  // namespace otp::internal
