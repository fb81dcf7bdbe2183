#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "otp/base/pool.h"

namespace otp::internal {

/// A map from ids (pids or references; 0 is no key) to small trivial values: open addressing, no
/// allocation while empty, and an order of iteration that depends on the operations alone, never on
/// addresses or a random salt, so that one seed gives one trace.
///
/// Threads: its owner only. V must be trivially copyable.
template <class V>
class IdMap {
 public:
  IdMap() = default;
  IdMap(const IdMap&) = delete;
  IdMap& operator=(const IdMap&) = delete;
  ~IdMap() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  V* find(uint64_t key) {
    if (size_ == 0) return nullptr;
    for (uint32_t i = home(key);; i = next(i)) {
      if (cells_[i].key == key) return &cells_[i].value;
      if (cells_[i].key == 0) return nullptr;
    }
  }

  /// The value of `key`, value-initialised if it was not there; second: whether it is new.
  std::pair<V*, bool> insert(uint64_t key) {
    if ((size_ + 1) * 4 > capacity_ * 3) grow();
    uint32_t i = home(key);
    for (; cells_[i].key != 0; i = next(i)) {
      if (cells_[i].key == key) return {&cells_[i].value, false};
    }
    cells_[i] = Cell{key, V{}};
    ++size_;
    return {&cells_[i].value, true};
  }

  bool erase(uint64_t key) {
    if (size_ == 0) return false;
    uint32_t i = home(key);
    for (; cells_[i].key != key; i = next(i)) {
      if (cells_[i].key == 0) return false;
    }
    // Backward shift: no tombstones, so a look-up never walks over what has gone.
    for (uint32_t j = next(i); cells_[j].key != 0; j = next(j)) {
      uint32_t wanted = home(cells_[j].key);
      if (((j - wanted) & (capacity_ - 1)) >= ((j - i) & (capacity_ - 1))) {
        cells_[i] = cells_[j];
        i = j;
      }
    }
    cells_[i].key = 0;
    --size_;
    return true;
  }

  /// Calls fn(key, value&) for each; fn must not change the map.
  template <class F>
  void for_each(F fn) {
    for (uint32_t i = 0; i < capacity_ && size_ > 0; ++i) {
      if (cells_[i].key != 0) fn(cells_[i].key, cells_[i].value);
    }
  }

  void clear() {
    release();
    cells_ = nullptr;
    capacity_ = size_ = 0;
  }

 private:
  struct Cell {
    uint64_t key;
    V value;
  };
  uint32_t home(uint64_t key) const {
    return static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 32) & (capacity_ - 1);
  }
  uint32_t next(uint32_t i) const { return (i + 1) & (capacity_ - 1); }

  void grow() {
    uint32_t old_capacity = capacity_;
    Cell* old = cells_;
    capacity_ = capacity_ == 0 ? 4 : capacity_ * 2;
    cells_ = static_cast<Cell*>(pool_allocate(capacity_ * sizeof(Cell)));
    for (uint32_t i = 0; i < capacity_; ++i) cells_[i].key = 0;
    for (uint32_t k = 0; k < old_capacity; ++k) {
      if (old[k].key == 0) continue;
      uint32_t i = home(old[k].key);
      while (cells_[i].key != 0) i = next(i);
      cells_[i] = old[k];
    }
    if (old != nullptr) pool_free(old, old_capacity * sizeof(Cell));
  }
  void release() {
    if (cells_ != nullptr) pool_free(cells_, capacity_ * sizeof(Cell));
  }

  Cell* cells_ = nullptr;
  uint32_t capacity_ = 0;  // a power of two
  uint32_t size_ = 0;
};

}  // namespace otp::internal
