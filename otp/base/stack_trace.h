#pragma once

/// Stacks of calls: of this thread, of another thread, and (in throw_stack.h) of an exception.
///
///   otp::StackTrace here = otp::StackTrace::capture();   // a few tens of nanoseconds
///   log(here.to_string());                               // names are looked up only now
///
/// The code must be built with -fno-omit-frame-pointer. Names come from the dynamic symbol table:
/// link with -rdynamic. A function without an entry there (static, hidden) appears as
/// `module+0x1a2b`, which addr2line understands.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

/// For functions that read stack slots which the sanitizers do not know as ours, or that run in a
/// signal handler, where the sanitizers' own state may be half changed.
#if __has_attribute(disable_sanitizer_instrumentation)
#define OTP_UNINSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define OTP_UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

namespace otp {

/// One line of a stack, with what the dynamic symbol table knows about it.
struct StackFrame {
  uintptr_t address = 0;
  std::string function = {};  ///< demangled, cut after 400 bytes; empty when unknown
  uintptr_t offset = 0;       ///< of `address` in `function`
  std::string module = {};    ///< file name of the executable or library, without its folder
  uintptr_t module_offset = 0;

  /// `bank::Ledger::handle_call(Deposit)+0x2f (ledgerd+0x41c2f)`, or the parts that are known.
  std::string to_string() const;
};

/// Up to kMaxFrames return addresses, innermost first. A plain value: copying copies the array.
class StackTrace {
 public:
  static constexpr size_t kMaxFrames = 32;

  /// The stack of the caller, without its `skip` innermost frames.
  ///
  /// Follows frame pointers and checks each against the bounds of this thread's stack, so that a
  /// broken one ends the trace instead of faulting. A coroutine that a scheduler has resumed shows
  /// the frames on the machine stack only: the coroutines that await it are not there.
  ///
  /// Threads: any. Not for signal handlers (the first use on a thread looks up its bounds).
  static StackTrace capture(size_t skip = 0) noexcept;

  /// As capture(), by the unwind tables: slow (microseconds), but passes through code that was
  /// built without frame pointers.
  static StackTrace capture_by_tables(size_t skip = 0) noexcept;

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// The stack was deeper than kMaxFrames.
  OTP_UNINSTRUMENTED bool truncated() const noexcept { return truncated_; }
  std::span<const uintptr_t> addresses() const noexcept { return {addresses_.data(), size_}; }

  void clear() noexcept;
  /// Adds a frame at the outer end; remembers that it did not fit when full.
  void push(uintptr_t address) noexcept;

  /// Looks the names up. Allocates; takes microseconds per frame.
  std::vector<StackFrame> resolve() const;

  /// One line per frame, each `  #3 name+0x2f (module+0x41c2f)` and a line end.
  std::string to_string() const;

 private:
  std::array<uintptr_t, kMaxFrames> addresses_;
  uint32_t size_ = 0;
  bool truncated_ = false;
};

/// Takes the stack of another thread of this OS process, for the report of a stuck callback.
///
/// Sends it a real-time signal (the highest that nobody has a handler for) whose handler takes the
/// stack. A system call that the thread waits in may return EINTR.
///
/// Takes:   tid: the kernel's thread id (gettid()). timeout: waits at most twice that long.
/// Returns: nothing when there is no such thread, it blocks the signal, or it took too long.
/// Threads: any; up to eight at once, more get nothing.
std::optional<StackTrace> capture_thread(pid_t tid, std::chrono::milliseconds timeout);

/// A symbol name in C++ spelling; returned unchanged when it is none. Cut after `max_bytes`.
std::string demangle(const char* symbol, size_t max_bytes = 400);

}  // namespace otp

namespace otp::internal {

/// Follows the frame pointers from `frame` outwards.
///
/// Takes: pc: the innermost address, 0 for none. frame: a frame pointer, any value is safe.
///        stack_end: the end of the stack that `frame` must lie in, 0 when not known: then each
///        access is tried with the kernel first (safe in a signal handler).
void walk_frames(uintptr_t pc, uintptr_t frame, uintptr_t stack_end, StackTrace* out) noexcept;

/// The end (highest address) of this thread's stack. Cached; the first call may allocate.
uintptr_t this_thread_stack_end() noexcept;

}  // namespace otp::internal
