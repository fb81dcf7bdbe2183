// The threads of a System: workers that hold cores, what they do when idle, and the monitor that
// takes a core from a callback that does not end. See core.h for the invariants (R1-R4).

#include <linux/membarrier.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "otp/base/check.h"
#include "otp/runtime/runtime_log.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {

constexpr int64_t kPollEvery = 50'000;  // ns between looks at timers and poller while busy
constexpr int64_t kStealableAfter =
    50'000;                        // ns a queue must stay non-empty before others are woken
constexpr int64_t kSpin = 20'000;  // ns of looking before a core parks
constexpr int64_t kSentinelSleep =
    100'000;                            // ns between the looks of the one idle core that watches
constexpr int64_t kJudgedMin = 20'000;  // ns of a core's work by which it is judged, at least
constexpr int64_t kJudgedMax = 20'000'000;      // and at most
constexpr int64_t kUnitsPerMicrosecond = 10;    // of work: about a letter sent and handled
constexpr int64_t kFloodJudgedAfter = 200'000;  // ns between looks at what a core sends abroad
constexpr int64_t kFloodPerMicrosecond = 3;     // messages abroad: no time to do much else
constexpr uint32_t kLifoRunsMax = 3;
constexpr uint32_t kSparesMax = 64;

int membarrier(int command) { return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0)); }

}  // namespace

void core_lost(Env& env) { env.system->core_lost_by(env); }

void SystemImpl::core_lost_by(Env& env) {
  // The monitor decides under this mutex; afterwards owner says who holds the core (R3).
  std::lock_guard lock(handoff_mutex_);
  if (env.core->owner.load(relaxed) != &env) env.core = nullptr;
}

void SystemImpl::start_threads() {
  membarrier_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  std::lock_guard lock(handoff_mutex_);
  for (auto& core : cores_) {
    auto worker = std::make_unique<Worker>();
    worker->env.system = this;
    worker->env.core = core.get();
    core->owner.store(&worker->env, relaxed);
    Worker& started = *worker;
    try {
      worker->thread = std::thread([this, &started] { worker_main(started); });
    } catch (const std::system_error& error) {
      core->owner.store(nullptr, relaxed);
      if (workers_.empty()) throw;
      for (size_t i = core->index; i < cores_.size(); ++i)
        unmanned_mask_.fetch_or(1ull << i, relaxed);
      log_runtime(log(), LogLevel::warning,
                  std::string("no thread for another core, going on with fewer: ") + error.what());
      break;
    }
    workers_.push_back(std::move(worker));
  }
  if (options_.stuck_after.count() > 0 && membarrier_) {
    try {
      monitor_ = std::thread([this] { monitor_main(); });
    } catch (const std::system_error& error) {
      log_runtime(log(), LogLevel::warning,
                  std::string("no thread to watch for stuck callbacks: ") + error.what());
    }
  }
}

void SystemImpl::worker_main(Worker& worker) {
  Env& env = worker.env;
  current_env = &env;
  env.tid.store(::gettid(), relaxed);
  ::prctl(PR_SET_TIMERSLACK, 1ul);  // 1 ns: a sleep of 100 us would end 50 us late
  while (!stopping_.load(relaxed)) {
    Core* core = env.core;
    if (core == nullptr) break;  // lost while it ran a callback that was stuck (R4)
    if (uint32_t index = next_slot(env, *core)) {
      run_slot(env, index);
    } else {
      idle(env, *core);
    }
  }
  current_env = nullptr;
  std::lock_guard lock(handoff_mutex_);
  worker.retired = true;
  if (env.core == nullptr) {
    std::lock_guard monitor(monitor_mutex_);
    monitor_wake_.notify_all();  // it joins this thread
  }
}

uint32_t SystemImpl::next_slot(Env&, Core& core) {
  if ((++core.slices & 7) == 0) {
    look_around(core);
    if ((core.slices & 63) == 0) {
      if (uint32_t index = take_injected(core)) return index;
    }
  }
  if (core.lifo_runs < kLifoRunsMax || core.queue.empty()) {
    if (uint32_t index = core.queue.take_lifo()) {
      ++core.lifo_runs;
      core.lifo_last = index;
      return index;
    }
  }
  core.lifo_runs = 0;
  if (uint32_t index = core.queue.pop()) {
    if (index == core.lifo_last) core.lifo_last = 0;
    return index;
  }
  if (uint32_t index = core.queue.take_lifo()) return index;
  return take_injected(core);
}

// Every few slices: timers, the poller, and whether an idle core should come and take work.
void SystemImpl::look_around(Core& core) {
  int64_t at = core.clock.now();
  if (at >= core.next_timer.load(relaxed)) expire_timers(core);
  if (at - core.polled_at >= kPollEvery) {
    core.polled_at = at;
    core.poller->poll();
  }
  if (at - core.judged_at >= kFloodJudgedAfter && cores_.size() > 1) gather_senders(core, at);
  if (monitor_asleep_.load(relaxed)) {
    std::lock_guard lock(monitor_mutex_);
    monitor_asleep_.store(false, relaxed);
    monitor_wake_.notify_one();
  }
  if (core.queue.empty()) {
    core.busy_since = 0;
  } else if (core.busy_since == 0) {
    core.busy_since = at;
  } else if (at - core.busy_since > kStealableAfter && !sentinel_.load(relaxed) &&
             idle_mask_.load(relaxed) != 0) {
    core.busy_since = at;
    wake_idle_core();
  }
}

bool SystemImpl::others_busy(const Core& core) const {
  uint64_t all = cores_.size() == 64 ? ~0ull : (1ull << cores_.size()) - 1;
  return (idle_mask_.load(relaxed) | unmanned_mask_.load(relaxed) | 1ull << core.index) != all;
}

void SystemImpl::idle(Env& env, Core& core) {
  core.busy_since = 0;
  core.floods.store(0, relaxed);
  int64_t at = now();
  core.polled_at = at;
  expire_timers(core);
  core.poller->poll();
  if (!core.queue.empty() || core.queue.has_lifo() || injected_count_.load(relaxed) > 0) return;
  if (cores_.size() > 1) {
    if (steal(core)) return;
    if (others_busy(core) && watch_others(env, core)) return;
  }
  if (spin(core, at + kSpin)) return;
  park(core, -1);
}

// Looks for work for a while: waking up again would cost about as much. Never towards a known
// timer.
bool SystemImpl::spin(Core& core, int64_t until) {
  if (core.next_timer.load(relaxed) < until + kSpin) return false;
  while (now() < until) {
    if (injected_count_.load(relaxed) > 0 || stopping_.load(relaxed)) return true;
    for (int i = 0; i < 16; ++i) __builtin_ia32_pause();
  }
  return false;
}

// The sentinel: while any core is busy, one idle core looks every 100 µs whether work is left
// lying.
bool SystemImpl::watch_others(Env&, Core& core) {
  if (sentinel_.exchange(true, acq_rel)) return false;  // somebody does it already
  bool found = false;
  while (!found && !stopping_.load(relaxed) && others_busy(core)) {
    park(core, kSentinelSleep);
    expire_timers(core);
    core.poller->poll();
    found = !core.queue.empty() || core.queue.has_lifo() || injected_count_.load(relaxed) > 0 ||
            steal(core);
  }
  sentinel_.store(false, release);
  if (found && idle_mask_.load(relaxed) != 0) {
    for (auto& other : cores_) {
      if (other->queue.size() > 1) {  // more than one thief is worth waking for
        wake_idle_core();
        break;
      }
    }
  }
  return found;
}

// Not what talks all the time: a letter between cores costs ten times one at home, so a second core
// would make it slower. Judged by what the victim did since the thief's last look.
bool SystemImpl::worth_stealing(Core& thief, const Core& victim, int64_t at) {
  Core::Seen& seen = thief.seen[victim.index];
  const int64_t elapsed = at - seen.at;
  if (elapsed < kJudgedMin) return !seen.chatty;
  const uint64_t work = victim.work.load(relaxed);
  const auto units = static_cast<int64_t>(work - seen.work);
  seen = {work, at, elapsed > kJudgedMax || units > elapsed / 1000 * kUnitsPerMicrosecond};
  return !seen.chatty;
}

// Brings those home that flood processes of this core from another one: at home they are three
// times as fast, and two busy cores would never part with anything. Of two that flood each other
// the first gathers.
void SystemImpl::gather_senders(Core& core, int64_t at) {
  const auto sent = static_cast<int64_t>(std::exchange(core.sent_abroad, 0));
  const int64_t elapsed = at - std::exchange(core.judged_at, at);
  const uint32_t flooded = sent > elapsed / 1000 * kFloodPerMicrosecond ? core.abroad : 0;
  core.floods.store(flooded, relaxed);
  for (auto& other : cores_) {
    if (other->floods.load(relaxed) != core.index + 1) continue;
    if (flooded == other->index + 1 && other->index < core.index) continue;
    std::array<uint32_t, RunQueue::kCapacity / 2> half;
    while (uint32_t count = other->queue.take_half(half)) {
      for (uint32_t k = 0; k < count; ++k) schedule_tail(half[k]);
    }
  }
}

bool SystemImpl::steal(Core& thief) {
  const int64_t at = thief.clock.now();
  for (size_t i = 1; i < cores_.size(); ++i) {
    Core& victim = *cores_[(thief.index + i) % cores_.size()];
    if (!worth_stealing(thief, victim, at) || victim.queue.empty()) continue;
    std::array<uint32_t, RunQueue::kCapacity / 2> half;
    uint32_t count = victim.queue.take_half(half);
    for (uint32_t k = 0; k < count; ++k) {
      if (!thief.queue.push(half[k])) inject(half[k]);
    }
    if (count > 0) return true;
  }
  return false;
}

void SystemImpl::park(Core& core, int64_t timeout_limit) {
  const uint64_t bit = 1ull << core.index;
  const bool watching = timeout_limit >= 0;
  // seq_cst: see inject(). A sentinel is not in the mask: it looks by itself.
  if (!watching) idle_mask_.fetch_or(bit, seq_cst);
  if (injected_count_.load(seq_cst) == 0 && !stopping_.load(seq_cst)) {
    int64_t next = core.next_timer.load(relaxed);
    int64_t timeout = -1;
    if (next != TimerWheel::kNever) {
      int64_t left = next - now();
      timeout = left < 0 ? 0 : left;
    }
    if (watching && (timeout < 0 || timeout > timeout_limit)) timeout = timeout_limit;
    core.parked.store(true, relaxed);
    core.poller->park(timeout);
    core.parked.store(false, relaxed);
  }
  if (!watching) idle_mask_.fetch_and(~bit, seq_cst);
}

// ---- The monitor

void SystemImpl::monitor_main() {
  struct Seen {
    uint64_t beat = ~0ull;
    int64_t since = 0;
  };
  std::vector<Seen> seen(cores_.size());
  const auto pause = options_.stuck_after / 2;
  int quiet_looks = 0;
  std::unique_lock lock(monitor_mutex_);
  while (!monitor_stop_) {
    if (quiet_looks > 20) {
      monitor_asleep_.store(true, relaxed);
      monitor_wake_.wait_for(lock, std::chrono::seconds(1));
      monitor_asleep_.store(false, relaxed);
      quiet_looks = 0;
    } else {
      monitor_wake_.wait_for(lock, pause);
    }
    lock.unlock();
    bool busy = false;
    for (size_t i = 0; i < cores_.size(); ++i) {
      Core& core = *cores_[i];
      uint64_t beat = core.beat.load(relaxed);
      int64_t at = now();
      if (core.parked.load(relaxed)) {
        seen[i].beat = ~0ull;
        continue;
      }
      busy = true;
      if (beat != seen[i].beat) {
        seen[i] = {beat, at};
      } else if (at - seen[i].since >= options_.stuck_after.count() && hand_over(core, beat)) {
        seen[i].beat = ~0ull;
      }
    }
    quiet_looks = busy ? 0 : quiet_looks + 1;
    {
      std::unique_lock handoff(handoff_mutex_);
      join_retired(handoff);
    }
    lock.lock();
  }
}

void SystemImpl::join_retired(std::unique_lock<std::mutex>& lock) {
  for (auto it = workers_.begin(); it != workers_.end();) {
    Worker& worker = **it;
    if (!worker.retired || worker.env.core != nullptr) {
      ++it;
      continue;
    }
    std::thread thread = std::move(worker.thread);
    lock.unlock();
    thread.join();
    lock.lock();
    it = workers_.erase(it);
  }
}

SystemImpl::Worker* SystemImpl::spare_worker() {
  if (workers_.size() >= cores_.size() + kSparesMax) {
    if (!spare_warned_) {
      spare_warned_ = true;
      log_runtime(log(), LogLevel::error, "64 callbacks are stuck at once: no more spare threads");
    }
    return nullptr;
  }
  workers_.push_back(std::make_unique<Worker>());
  workers_.back()->env.system = this;
  return workers_.back().get();
}

// Takes the core from a callback that has run too long and gives it to a new thread (R3).
bool SystemImpl::hand_over(Core& core, uint64_t beat) {
  std::lock_guard lock(handoff_mutex_);
  Env* holder = core.owner.load(relaxed);
  // acquire: pairs with the release at the end of LibraryScope, so that the new holder sees the
  // core's state.
  if (holder == nullptr || holder->in_library.load(acquire) != 0) return false;
  Worker* spare = spare_worker();
  if (spare == nullptr) return false;
  core.owner.store(nullptr, relaxed);
  const int fenced = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  OTP_CHECK(fenced == 0, "membarrier: errno %d after it was registered", errno);
  if (holder->in_library.load(acquire) != 0 || core.beat.load(relaxed) != beat) {
    core.owner.store(holder, relaxed);
    workers_.pop_back();
    return false;
  }
  spare->env.core = &core;
  core.owner.store(&spare->env, relaxed);
  try {
    spare->thread = std::thread([this, spare] { worker_main(*spare); });
  } catch (const std::system_error& error) {
    core.owner.store(holder, relaxed);
    workers_.pop_back();
    if (!spare_warned_) {
      spare_warned_ = true;
      log_runtime(
          log(), LogLevel::warning,
          std::string("a callback is stuck and no spare thread can be started: ") + error.what());
    }
    return false;
  }
  report_stuck(log(), *holder, options_.stuck_after);
  return true;
}

}  // namespace otp::internal
