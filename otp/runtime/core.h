#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "otp/base/atomic.h"
#include "otp/base/check.h"
#include "otp/base/compiler.h"
#include "otp/runtime/core_clock.h"
#include "otp/runtime/poller.h"
#include "otp/runtime/process.h"
#include "otp/runtime/run_queue.h"
#include "otp/runtime/timer_wheel.h"

/// Cores and threads. A core is what runs processes (a run queue, a timer wheel, a poller); a
/// thread holds at most one core, and a core is held by at most one thread.
///
/// Invariants
///  (R1) core.owner is the Env of the thread that holds the core. Only the monitor changes it,
///       under the System's handoff mutex.
///  (R2) A thread inside the library has in_library set and keeps its core until it clears it.
///       User code runs with in_library clear and may lose the core at any moment, so library code
///       touches a core between a LibraryScope's two ends only: held_core() sees to it.
///  (R3) Taking a core away: owner = null; membarrier; if the thread's in_library is clear, the
///       core goes to another thread; else owner is put back. On entering the library a thread
///       sets in_library, then reads owner. The membarrier orders the two sides like a full fence
///       on the thread that enters: either it sees the changed owner or the monitor sees
///       in_library set.
///  (R4) A thread that lost its core goes on in user code; its library calls use the System's
///       shared paths. When the callback ends it gives its process back and retires.
namespace otp::internal {

class SystemImpl;
struct Core;

/// What the library knows of the current thread.
struct Env {
  Core* core = nullptr;  // null: a thread outside, or one that lost its core (R4)
  SystemImpl* system = nullptr;
  Process* process = nullptr;      // the process whose slice this is
  Atomic<uint32_t> in_library{1};  // (R2) read by the monitor
  Atomic<int> tid{0};              // the kernel's id of the thread, for capture_thread
};
extern constinit thread_local Env* current_env;

struct Core {
  Core(SystemImpl& owner_system, uint32_t core_index, bool only_core, int64_t now,
       std::unique_ptr<Poller> the_poller)
      : system(owner_system),
        index(core_index),
        poller(std::move(the_poller)),
        queue(only_core),
        wheel(now),
        last_reference((static_cast<uint64_t>(core_index) + 1) << 48) {}

  // Constant after construction.
  SystemImpl& system;
  const uint32_t index;
  const std::unique_ptr<Poller> poller;

  RunQueue queue;
  Atomic<Env*> owner{nullptr};  // (R1)
  Atomic<uint64_t> beat{0};     // counts callbacks; only the holder writes; the monitor compares
  Atomic<uint64_t> spawned{0};  // only the holder writes
  Atomic<uint64_t> ended{0};    // only the holder writes
  Atomic<uint64_t> work{0};     // units of slices' budgets used; only the holder writes
  Atomic<bool> parked{false};   // for the monitor: nothing runs here
  Atomic<uint32_t> floods{0};   // 1 + the core whose processes it floods; the holder writes

  std::mutex wheel_mutex;
  TimerWheel wheel;                                // guarded by wheel_mutex
  Atomic<int64_t> next_timer{TimerWheel::kNever};  // written under wheel_mutex, read by the holder

  /// What a thief saw of another core.
  struct Seen {
    uint64_t work = 0;
    int64_t at = 0;
    bool chatty = true;
  };

  // The holder only.
  std::vector<uint32_t> free_slots;
  uint64_t last_reference;  // the core's index + 1 in the high 16 bits
  CoreClock clock;
  uint32_t slices = 0;
  int64_t polled_at = 0;
  int64_t busy_since = 0;  // when the queue was first seen non-empty, 0 = it was empty
  uint32_t lifo_runs = 0;
  uint32_t lifo_last = 0;    // the slot that the LIFO place gave last
  uint64_t sent_abroad = 0;  // messages to processes awake on other cores, since judged_at
  uint32_t abroad = 0;       // 1 + the core of the last of them
  int64_t judged_at = 0;
  std::array<Seen, 64> seen{};  // of the other cores, when this one looked for work there
};

void core_lost(Env& env);

/// Aborts when the calling thread runs user code: what comes may work on a core that it has lost.
inline void require_library(const Env& env) {
  OTP_CHECK(env.in_library.load(relaxed) != 0,
            "library code of process %s runs as user code: a LibraryScope is missing",
            env.process == nullptr ? "(none)" : env.process->pid().to_string().c_str());
}

/// The core that the calling thread holds, null if none. REQUIRES: a LibraryScope (R2), which is
/// seen to under the sanitizers; in the Simulator, where every build looks, by schedule_tail.
inline Core* held_core() {
  const Env& env = *current_env;
#ifdef OTP_SANITIZED
  require_library(env);
#endif
  return env.core;
}

/// Brackets every entry from user code into the library (R2, R3).
class LibraryScope {
 public:
  explicit LibraryScope(Env& env) : env_(env), before_(env.in_library.load(relaxed)) {
    env.in_library.store(1, relaxed);
    // The compiler must not move the load up; the processor is held by the monitor's membarrier
    // (R3).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (env.core != nullptr && env.core->owner.load(relaxed) != &env) [[unlikely]]
      core_lost(env);
  }
  LibraryScope(const LibraryScope&) = delete;
  LibraryScope& operator=(const LibraryScope&) = delete;
  // release: pairs with the monitor's acquire, so that the core's next holder sees what was done
  // with it.
  ~LibraryScope() { env_.in_library.store(before_, release); }

 private:
  Env& env_;
  const uint32_t before_;
};

/// Brackets every call from the library into user code (R2).
class UserScope {
 public:
  explicit UserScope(Env& env) : env_(env) {
    if (env.core != nullptr) {
      env.core->beat.store(env.core->beat.load(relaxed) + 1, relaxed);
    }
    env.in_library.store(0, release);
  }
  UserScope(const UserScope&) = delete;
  UserScope& operator=(const UserScope&) = delete;
  ~UserScope() {
    env_.in_library.store(1, relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (env_.core != nullptr && env_.core->owner.load(relaxed) != &env_) [[unlikely]]
      core_lost(env_);
  }

 private:
  Env& env_;
};

}  // namespace otp::internal
