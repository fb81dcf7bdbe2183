#include "otp/base/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>
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

  void attach(PoolCache* cache) {
    std::lock_guard lock(mutex_);
    caches_.push_back(cache);
  }
  void detach(PoolCache* cache) {
    std::lock_guard lock(mutex_);
    std::erase(caches_, cache);
  }

  size_t blocks_in_use() {
    std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const UsedBlock& piece : pieces_) count += kPieceBytes / piece.bytes;
    for (auto& batches : batches_) {
      for (const Batch& batch : batches) count -= batch.count;
    }
    for (const PoolCache* cache : caches_) {
      for (uint32_t free : cache->count) count -= free;
    }
    return count;
  }

  std::vector<UsedBlock> used_blocks() {
    std::lock_guard lock(mutex_);
    std::unordered_set<const void*> free;
    auto note = [&](const PoolBlock* block, uint32_t count) {
      for (; count > 0; --count, block = block->next) free.insert(block);
    };
    for (auto& batches : batches_) {
      for (const Batch& batch : batches) note(batch.first, batch.count);
    }
    for (const PoolCache* cache : caches_) {
      for (size_t index = 0; index < kPoolClasses; ++index) {
        note(cache->free[index], cache->count[index]);
      }
    }
    std::vector<UsedBlock> used;
    for (const UsedBlock& piece : pieces_) {
      for (size_t i = 0; i < kPieceBytes / piece.bytes; ++i) {
        void* block = static_cast<std::byte*>(piece.memory) + i * piece.bytes;
        if (!free.contains(block)) used.push_back({block, piece.bytes});
      }
    }
    return used;
  }

 private:
  Batch cut(size_t block_bytes) {
    auto* piece = static_cast<std::byte*>(fresh_piece(block_bytes));
    uint32_t count = static_cast<uint32_t>(kPieceBytes / block_bytes);
    for (uint32_t i = 0; i < count; ++i) {
      auto* block = reinterpret_cast<PoolBlock*>(piece + i * block_bytes);
      block->next =
          i + 1 < count ? reinterpret_cast<PoolBlock*>(piece + (i + 1) * block_bytes) : nullptr;
    }
    return {reinterpret_cast<PoolBlock*>(piece), count};
  }

  void* fresh_piece(size_t block_bytes) {
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
    pieces_.push_back({piece, block_bytes});
    return piece;
  }

  std::mutex mutex_;
  std::vector<Batch> batches_[kPoolClasses];
  std::vector<UsedBlock> pieces_;  // each with the size of its blocks
  std::vector<PoolCache*> caches_;
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
  CacheOwner() { depot().attach(&pool_cache); }
  CacheOwner(const CacheOwner&) = delete;
  CacheOwner& operator=(const CacheOwner&) = delete;
  ~CacheOwner() {
    depot().detach(&pool_cache);
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

size_t pool_blocks_in_use() {
#ifdef OTP_SANITIZED
  return 0;
#else
  own_cache();
  return depot().blocks_in_use();
#endif
}

std::vector<UsedBlock> pool_used_blocks() {
#ifdef OTP_SANITIZED
  return {};
#else
  own_cache();
  return depot().used_blocks();
#endif
}

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
