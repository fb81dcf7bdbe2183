#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "otp/base/compiler.h"

/// Memory for letters, coroutine frames and processes: blocks of 64-byte classes, cached by each
/// thread, freed to the cache of the thread that frees, exchanged between threads in batches.
///
/// Why not malloc: a letter is made on one core and freed on another for each message between
/// cores, which costs a general allocator 35-400 ns here and this one about 2. Blocks over
/// kPoolBlockMax come from operator new. Memory that was once used for blocks stays with the pool
/// for reuse.
///
/// Threads: any. Under the address and thread sanitizers each block is an allocation of its own, so
/// that they see every use after free.
namespace otp::internal {

inline constexpr size_t kPoolStep = 64;
inline constexpr size_t kPoolBlockMax = 1024;
inline constexpr size_t kPoolClasses = kPoolBlockMax / kPoolStep;

struct PoolBlock {
  PoolBlock* next;
};

/// One thread's cache. Touched by its thread only.
struct PoolCache {
  PoolBlock* free[kPoolClasses];
  uint32_t count[kPoolClasses];
};

extern constinit thread_local PoolCache pool_cache;
inline constexpr uint32_t kPoolCacheMax = 512;  // blocks of one class before half go to the depot

void* pool_refill(size_t index);
void pool_spill(size_t index) noexcept;

/// The class of blocks of `bytes`, which must be at most kPoolBlockMax.
constexpr size_t pool_class(size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / kPoolStep; }

inline void* pool_allocate(size_t bytes) {
#ifdef OTP_SANITIZED
  return ::operator new(bytes);
#else
  if (bytes > kPoolBlockMax) [[unlikely]]
    return ::operator new(bytes);
  size_t index = pool_class(bytes);
  PoolBlock* block = pool_cache.free[index];
  if (block == nullptr) [[unlikely]]
    return pool_refill(index);
  pool_cache.free[index] = block->next;
  --pool_cache.count[index];
  return block;
#endif
}

/// Frees a block of this class.
inline void pool_free_class(void* memory, size_t index) noexcept {
#ifdef OTP_SANITIZED
  static_cast<void>(index);
  ::operator delete(memory);
#else
  auto* block = static_cast<PoolBlock*>(memory);
  block->next = pool_cache.free[index];
  pool_cache.free[index] = block;
  if (++pool_cache.count[index] > kPoolCacheMax) [[unlikely]]
    pool_spill(index);
#endif
}

/// `bytes` must be the size given to pool_allocate.
inline void pool_free(void* memory, size_t bytes) noexcept {
  if (bytes > kPoolBlockMax) [[unlikely]]
    return ::operator delete(memory);
  pool_free_class(memory, pool_class(bytes));
}

/// A block that is not free. `bytes` is its class, at least what was asked for.
struct UsedBlock {
  void* memory;
  size_t bytes;
};
/// Blocks that are not free now, for leak checks: exact while no other thread uses the pool. Costs
/// the other functions nothing. 0 and none under the address and thread sanitizers, which find
/// leaks themselves.
size_t pool_blocks_in_use();
std::vector<UsedBlock> pool_used_blocks();

}  // namespace otp::internal
