#pragma once

#include <atomic>

/// The one name for every atomic of the lock-free parts (inbox, slot, run queue, revocation), so
/// that a model checker can stand in for std::atomic. Define OTP_ATOMIC_HEADER to the header of the
/// stand-in, which must define otp::Atomic<T> with the interface of std::atomic<T>.
#ifdef OTP_ATOMIC_HEADER
#include OTP_ATOMIC_HEADER
#else
namespace otp {
template <class T>
using Atomic = std::atomic<T>;
}  // namespace otp
#endif

namespace otp::internal {
inline constexpr std::memory_order relaxed = std::memory_order_relaxed;
inline constexpr std::memory_order acquire = std::memory_order_acquire;
inline constexpr std::memory_order release = std::memory_order_release;
inline constexpr std::memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr std::memory_order seq_cst = std::memory_order_seq_cst;
}  // namespace otp::internal
