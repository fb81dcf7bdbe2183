// capture_thread(): the stack of another thread, by a signal.
//
// A request slot is one word `turn << 3 | state`; the signal carries the slot's index and its turn.
// States say who owns the slot's `stack`:
//   free       nobody; a requester takes it (-> pending) with a new turn
//   pending    the requester waits; the target's handler may take it (-> taken), or the requester
//              gives up (-> free)
//   taken      the handler alone; it ends with -> done
//   done       the requester alone; it reads the stack and frees the slot
//   abandoned  as taken, but the requester has left: the handler ends with -> free
// A signal that arrives after its requester gave up finds another turn or state, and does nothing.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>

#include "otp/base/stack_trace.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OTP_TSAN 1
#endif
#endif

namespace otp {
namespace {

enum State : uint32_t { kFree = 0, kPending = 1, kTaken = 2, kDone = 3, kAbandoned = 4 };
constexpr uint32_t kStateBits = 3;
constexpr uint32_t kStateMask = (1u << kStateBits) - 1;
constexpr size_t kSlots = 8;

struct Slot {
  std::atomic<uint32_t> word{kFree};
  StackTrace stack;
};

Slot slots[kSlots];  // signal handlers belong to the OS process: so does this

OTP_UNINSTRUMENTED constexpr uint32_t make_word(uint32_t turn, State state) {
  return turn << kStateBits | state;
}

OTP_UNINSTRUMENTED void futex_wake(std::atomic<uint32_t>* word) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

#if !defined(OTP_TSAN)
struct Unwound {
  StackTrace* out;
  uintptr_t pc;  // frames inside of it are the handler's
  bool found;
};

OTP_UNINSTRUMENTED _Unwind_Reason_Code add_interrupted(_Unwind_Context* context, void* argument) {
  auto* unwound = static_cast<Unwound*>(argument);
  const uintptr_t address = _Unwind_GetIP(context);
  if (!unwound->found && address != unwound->pc) return _URC_NO_REASON;
  unwound->found = true;
  if (address == 0) return _URC_END_OF_STACK;
  unwound->out->push(address);
  return unwound->out->truncated() ? _URC_END_OF_STACK : _URC_NO_REASON;
}

// Of the linker's stub of a function in another module no table knows, and it has no frame: its
// caller is where a function that has just been called returns to. The unwinder takes the registers
// of the interrupted code from `context`, so it is shown that caller there for a moment.
OTP_UNINSTRUMENTED void add_callers_of_stub(ucontext_t& context, StackTrace* out) noexcept {
  const mcontext_t registers = context.uc_mcontext;
#if defined(__x86_64__)
  auto& pc = context.uc_mcontext.gregs[REG_RIP];
  auto& top = context.uc_mcontext.gregs[REG_RSP];
  pc = *reinterpret_cast<const greg_t*>(top);
  top += sizeof(uintptr_t);
#elif defined(__aarch64__)
  auto& pc = context.uc_mcontext.pc;
  pc = context.uc_mcontext.regs[30];
#endif
  Unwound unwound{out, static_cast<uintptr_t>(pc), false};
  _Unwind_Backtrace(add_interrupted, &unwound);
  context.uc_mcontext = registers;
}
#endif

// By the unwind tables first: a stuck thread mostly sits in libc, which has no frame pointers. With
// glibc >= 2.35 the unwinder finds the tables by _dl_find_object, which takes no lock. The thread
// sanitizer intercepts what the unwinder calls, and would deadlock: there frame pointers must do.
OTP_UNINSTRUMENTED void take_interrupted(ucontext_t& context, StackTrace* out) noexcept {
#if defined(__x86_64__)
  const auto pc = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto frame = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RBP]);
#elif defined(__aarch64__)
  const auto pc = static_cast<uintptr_t>(context.uc_mcontext.pc);
  const auto frame = static_cast<uintptr_t>(context.uc_mcontext.regs[29]);
#else
#error "capture_thread: this processor's registers are not known here"
#endif
#if !defined(OTP_TSAN)
  Unwound unwound{out, pc, false};
  _Unwind_Backtrace(add_interrupted, &unwound);
  if (out->size() == 1) add_callers_of_stub(context, out);
  if (unwound.found) return;
#endif
  internal::walk_frames(pc, frame, 0, out);
}

OTP_UNINSTRUMENTED void on_signal(int, siginfo_t* info, void* context) {
  if (info->si_code != SI_QUEUE || info->si_pid != getpid()) return;
  const auto payload = reinterpret_cast<uintptr_t>(info->si_value.sival_ptr);
  const size_t index = payload & 0xff;
  if (index >= kSlots) return;
  const int saved_errno = errno;
  Slot& slot = slots[index];
  uint32_t expected = static_cast<uint32_t>(payload >> 8);
  const uint32_t turn = expected >> kStateBits;
  // acquire: the slot is ours after its last reader.
  if (slot.word.compare_exchange_strong(expected, make_word(turn, kTaken),
                                        std::memory_order_acquire)) {
    slot.stack.clear();
    take_interrupted(*static_cast<ucontext_t*>(context), &slot.stack);
    expected = make_word(turn, kTaken);
    // release: pairs with the requester's acquire, which then reads the stack.
    if (!slot.word.compare_exchange_strong(expected, make_word(turn, kDone),
                                           std::memory_order_release)) {
      slot.word.store(make_word(turn, kFree), std::memory_order_release);  // abandoned
    }
    futex_wake(&slot.word);
  }
  errno = saved_errno;
}

#if defined(OTP_TSAN) && defined(__x86_64__)
// The thread sanitizer delays signals until the thread calls into it, which a stuck one never does:
// so hand the handler to the kernel directly. These bytes are what unwinders know a return from a
// signal by.
asm(".text\n.p2align 4\n.type otp_restore_rt,@function\notp_restore_rt:\n"
    "  mov $15, %rax\n  syscall\n.size otp_restore_rt, .-otp_restore_rt\n");
extern "C" void otp_restore_rt();

struct KernelSigaction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

bool install(int signal_number) {
  constexpr unsigned long kHasRestorer = 0x04000000;
  KernelSigaction action{on_signal, SA_SIGINFO | SA_RESTART | SA_ONSTACK | kHasRestorer,
                         otp_restore_rt, 0};
  return syscall(SYS_rt_sigaction, signal_number, &action, nullptr, 8) == 0;
}
#else
bool install(int signal_number) {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return sigaction(signal_number, &action, nullptr) == 0;
}
#endif

// The highest real-time signal that nobody handles; 0 when there is none.
int reserve_signal() {
  StackTrace::capture_by_tables();  // the unwinder's first use initialises it: not in a handler
  for (int number = SIGRTMAX; number >= SIGRTMIN; --number) {
    struct sigaction current;
    if (sigaction(number, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) continue;
    return install(number) ? number : 0;
  }
  return 0;
}

Slot* take_slot(uint32_t* pending) {
  static std::mutex mutex;
  static uint32_t turn = 0;
  std::lock_guard lock(mutex);
  turn = (turn + 1) & 0xffffff;
  for (Slot& slot : slots) {
    uint32_t word = slot.word.load(std::memory_order_relaxed);
    if ((word & kStateMask) != kFree) continue;
    *pending = make_word(turn, kPending);
    // acquire: after the last handler's writes, when it was an abandoned one.
    if (slot.word.compare_exchange_strong(word, *pending, std::memory_order_acquire)) return &slot;
  }
  return nullptr;
}

bool send_request(int number, pid_t tid, const Slot& slot, uint32_t pending) {
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  const auto index = static_cast<uintptr_t>(&slot - slots);
  info.si_value.sival_ptr = reinterpret_cast<void*>(uintptr_t{pending} << 8 | index);
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, number, &info) == 0;
}

// Waits while the word is `value`, at most until `deadline` (monotonic).
void wait_while(std::atomic<uint32_t>* word, uint32_t value, const timespec& deadline) {
  while (word->load(std::memory_order_acquire) == value) {
    const long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline,
                                nullptr, FUTEX_BITSET_MATCH_ANY);
    if (result == -1 && errno == ETIMEDOUT) return;
  }
}

timespec deadline_after(std::chrono::milliseconds timeout) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto nanoseconds = std::chrono::nanoseconds(timeout % std::chrono::seconds(1)).count();
  now.tv_sec += timeout / std::chrono::seconds(1);
  now.tv_nsec += nanoseconds;
  if (now.tv_nsec >= 1'000'000'000) {
    now.tv_nsec -= 1'000'000'000;
    ++now.tv_sec;
  }
  return now;
}

}  // namespace

std::optional<StackTrace> capture_thread(pid_t tid, std::chrono::milliseconds timeout) {
  static const int signal_number = reserve_signal();
  uint32_t pending = 0;
  Slot* slot = signal_number == 0 ? nullptr : take_slot(&pending);
  if (slot == nullptr) return std::nullopt;
  const uint32_t turn = pending >> kStateBits;
  if (send_request(signal_number, tid, *slot, pending)) {
    wait_while(&slot->word, pending, deadline_after(timeout));
  }
  uint32_t expected = pending;
  // relaxed: nothing was written to the slot.
  if (slot->word.compare_exchange_strong(expected, make_word(turn, kFree),
                                         std::memory_order_relaxed)) {
    return std::nullopt;
  }
  wait_while(&slot->word, make_word(turn, kTaken), deadline_after(timeout));
  expected = make_word(turn, kTaken);
  if (slot->word.compare_exchange_strong(expected, make_word(turn, kAbandoned),
                                         std::memory_order_acquire)) {
    return std::nullopt;
  }
  StackTrace stack = slot->stack;  // done: ours, by the acquire of wait_while or the exchange
  // release: pairs with take_slot, so that the next handler writes after this read.
  slot->word.store(make_word(turn, kFree), std::memory_order_release);
  return stack;
}

}  // namespace otp
