#include "otp/base/pool.h"

#include <sys/mman.h>

#include <mutex>
#include <vector>

namespace otp::internal {

constinit thread_local PoolCache pool_cache{};

namespace {

constexpr size_t kRegionBytes = 2u << 20;  // one huge page
constexpr size_t kPieceBytes = 64u << 10;
constexpr uint32_t kBatch = kPoolCacheMax / 2;

struct Batch {
  PoolBlock* first;
  uint32_t count;
};

/// What no thread's cache holds: batches a class, and fresh memory cut from huge pages.
class Depot {
 public:
  Batch take(size_t index) {
    {
      std::lock_guard lock(mutex_);
      if (!batches_[index].empty()) {
        Batch batch = batches_[index].back();
        batches_[index].pop_back();
        return batch;
      }
    }
    return cut((index + 1) * kPoolStep);
  }

  void give(size_t index, Batch batch) noexcept {
    std::lock_guard lock(mutex_);
    batches_[index].push_back(batch);
  }

 private:
  Batch cut(size_t block_bytes) {
    auto* piece = static_cast<std::byte*>(fresh_piece());
    uint32_t count = static_cast<uint32_t>(kPieceBytes / block_bytes);
    for (uint32_t i = 0; i < count; ++i) {
      auto* block = reinterpret_cast<PoolBlock*>(piece + i * block_bytes);
      block->next =
          i + 1 < count ? reinterpret_cast<PoolBlock*>(piece + (i + 1) * block_bytes) : nullptr;
    }
    return {reinterpret_cast<PoolBlock*>(piece), count};
  }

  void* fresh_piece() {
    std::lock_guard lock(mutex_);
    if (region_ == nullptr || region_used_ == kRegionBytes) {
      // Twice the size, so that a whole aligned huge page lies inside; the rest is given back.
      void* raw = ::mmap(nullptr, 2 * kRegionBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (raw == MAP_FAILED) throw std::bad_alloc();
      auto begin = reinterpret_cast<uintptr_t>(raw);
      uintptr_t aligned = (begin + kRegionBytes - 1) & ~(kRegionBytes - 1);
      if (aligned > begin) ::munmap(raw, aligned - begin);
      uintptr_t tail = begin + kRegionBytes - aligned;
      if (tail > 0) ::munmap(reinterpret_cast<void*>(aligned + kRegionBytes), tail);
      region_ = reinterpret_cast<std::byte*>(aligned);
      region_used_ = 0;
      // Small programs stay small.
      if (++regions_ > 1) ::madvise(region_, kRegionBytes, MADV_HUGEPAGE);
    }
    void* piece = region_ + region_used_;
    region_used_ += kPieceBytes;
    return piece;
  }

  std::mutex mutex_;
  std::vector<Batch> batches_[kPoolClasses];
  std::byte* region_ = nullptr;
  size_t region_used_ = 0;
  size_t regions_ = 0;
};

// Never destroyed: threads that end after main still give their blocks back.
Depot& depot() {
  static Depot* depot = new Depot;
  return *depot;
}

/// Gives a thread's cache back when the thread ends.
struct CacheOwner {
  ~CacheOwner() {
    for (size_t index = 0; index < kPoolClasses; ++index) {
      if (pool_cache.free[index] == nullptr) continue;
      depot().give(index, {pool_cache.free[index], pool_cache.count[index]});
      pool_cache.free[index] = nullptr;
      pool_cache.count[index] = 0;
    }
  }
};

void own_cache() {
  static thread_local CacheOwner owner;
  static_cast<void>(owner);
}

}  // namespace

void* pool_refill(size_t index) {
  own_cache();
  Batch batch = depot().take(index);
  pool_cache.free[index] = batch.first->next;
  pool_cache.count[index] = batch.count - 1;
  return batch.first;
}

void pool_spill(size_t index) noexcept {
  own_cache();
  Batch batch{pool_cache.free[index], kBatch};
  PoolBlock* last = batch.first;
  for (uint32_t i = 1; i < kBatch; ++i) last = last->next;
  pool_cache.free[index] = last->next;
  pool_cache.count[index] -= kBatch;
  last->next = nullptr;
  depot().give(index, batch);
}

}  // namespace otp::internal
