#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "otp/base/timeout.h"
#include "otp/runtime/blocking_pool.h"
#include "otp/runtime/core.h"
#include "otp/runtime/name_table.h"
#include "otp/runtime/slot.h"
#include "otp/runtime/system_options.h"

namespace otp::internal {

/// How a new process is tied to its parent, atomically with its birth.
struct Birth {
  uint64_t parent = 0;   // pid id, 0 = started from outside
  bool link = false;     // to the parent
  uint64_t monitor = 0;  // a reference of the parent's: it gets DOWN
};

/// The parts of a System behind its public face: slots, cores, threads, names, timers, blocking
/// lane.
///
/// Threads: everything here may be called by any thread that has set current_env (every library
/// entry has); members say who touches them.
class SystemImpl {
 public:
  SystemImpl(SystemOptions options, bool simulated);
  SystemImpl(const SystemImpl&) = delete;
  SystemImpl& operator=(const SystemImpl&) = delete;
  ~SystemImpl();

  // -- Letters and processes.

  /// Delivers `letter` to the process with this id; takes it. A dead or unknown process's slot
  /// answers.
  void deliver(uint64_t target, Letter* letter) {
    uint32_t index = static_cast<uint32_t>(target);
    if (index == 0 || index >= slots_.slots_max()) [[unlikely]]
      return deliver_to_nobody(letter);
    letter->generation = static_cast<uint32_t>(target >> 32);
    if (slots_[index].push(letter)) schedule_woken(index);
  }
  /// Delivers a message of `sender` (null: of nobody), whose budget pays for it by the length of
  /// the receiver's queue.
  void deliver_message(Process* sender, uint64_t target, Letter* letter);
  /// Starts `body`; returns its pid id, or 0 when no slot is left or the System is ending.
  uint64_t spawn(std::unique_ptr<Process> body, const Birth& birth);
  bool is_alive(uint64_t id) {
    uint32_t index = static_cast<uint32_t>(id);
    if (index == 0 || index >= slots_.slots_max()) return false;
    uint64_t state = slots_[index].state.load(acquire);
    return (state >> 32) == (id >> 32) && (state & kAlive);
  }
  /// How many letters wait for that process, roughly. 0 for nobody.
  uint32_t backlog_of(uint64_t id) {
    uint32_t index = static_cast<uint32_t>(id);
    return index < slots_.slots_max() ? slots_[index].backlog.load(relaxed) : 0;
  }
  /// Whether that process's mailbox has a limit and has reached it, as far as can be told.
  bool is_full(uint64_t id) {
    uint32_t index = static_cast<uint32_t>(id);
    if (index >= slots_.slots_max()) return false;
    const uint32_t most = slots_[index].letters_max.load(relaxed);
    return most != 0 && slots_[index].backlog.load(relaxed) >= most;
  }
  Slot& slot_of(uint64_t id) { return slots_[static_cast<uint32_t>(id)]; }
  uint64_t process_count() const;
  uint64_t new_reference() {
    Core* core = held_core();
    return core != nullptr ? ++core->last_reference : new_reference_outside();
  }

  // -- Time.
  int64_t now() const { return simulated_ ? virtual_now_ : monotonic_now(); }
  /// now(), cheaper. REQUIRES: a LibraryScope of this thread.
  int64_t core_now() const {
    Core* core = held_core();
    return core != nullptr && !simulated_ ? core->clock.now() : now();
  }
  /// When `timeout` is over, counted from now; kNever for infinity. Never overflows.
  int64_t deadline_after(Timeout timeout) const {
    return timeout.is_infinite() ? TimerWheel::kNever : time_after(now(), timeout);
  }
  /// The same by core_now(). REQUIRES: a LibraryScope of this thread.
  int64_t core_deadline_after(Timeout timeout) const {
    return timeout.is_infinite() ? TimerWheel::kNever : time_after(core_now(), timeout);
  }
  TimerId arm_timer(int64_t deadline, uint64_t target, Letter* letter, uint16_t* core,
                    bool goes_with_target = false);
  /// The same for a message to a process, which goes when the process ends.
  TimerId arm_message(int64_t deadline, uint64_t target, Letter* letter, uint16_t* core);
  int64_t cancel_timer(uint16_t core, TimerId timer);
  int64_t timer_deadline(uint16_t core, TimerId timer);

  /// Things that live as long as the System, by a key of whoever attaches them. Attached before the
  /// first process that asks is started; constant afterwards. Null: nothing under that key.
  void attach(uint64_t key, std::shared_ptr<const void> value) {
    attachments_.emplace_back(key, std::move(value));
  }
  const void* attachment(uint64_t key) const {
    for (auto& [its_key, value] : attachments_) {
      if (its_key == key) return value.get();
    }
    return nullptr;
  }

  NameTable& names() { return names_; }
  BlockingPool& blocking() { return blocking_; }
  const SystemOptions& options() const { return options_; }
  bool simulated() const { return simulated_; }
  LogSink* log() const { return options_.log; }
  uint32_t core_count() const { return static_cast<uint32_t>(cores_.size()); }
  Core& core(uint32_t index) { return *cores_[index]; }

  // -- For threads and the Simulator.
  void start_threads();
  void run_slot(Env& env, uint32_t index);
  /// One slice in a simulated System; false: nothing is runnable now.
  bool step(Env& env);
  /// Moves virtual time to the next timer, at most to `limit`; false: no timer before that.
  bool advance_to_next_timer(Env& env, int64_t limit);
  void set_virtual_now(int64_t now) { virtual_now_ = now; }
  uint64_t random();
  uint64_t trace_hash() const { return trace_hash_; }
  void trace(uint64_t value) { trace_hash_ = (trace_hash_ ^ value) * 0x100000001B3ull; }

  /// Makes a slot runnable; the caller holds its run right. `woken`: prefer it to what waits
  /// already.
  void schedule_woken(uint32_t index) {
    Core* core = held_core();
    if (core == nullptr || simulated_) [[unlikely]]
      return schedule_tail(index);
    // Who has just had the LIFO place waits for its turn: what many send to it comes together then.
    if (index == core->lifo_last && !core->queue.empty()) return schedule_tail(index);
    if (uint32_t displaced = core->queue.exchange_lifo(index)) schedule_tail(displaced);
  }
  void schedule_tail(uint32_t index);

  /// Ends every process, waits for it, stops the threads, and complains of what is left. See
  /// System::~System.
  void terminate();
  /// Called by a process that was asked with kSayWhatHolds.
  void hear_what_holds(const Process& process);
  void core_lost_by(Env& env);

 private:
  struct Worker {
    Env env;
    std::thread thread;
    bool retired = false;  // guarded by handoff_mutex_
    std::condition_variable assigned;
  };

  uint64_t new_reference_outside();
  static int64_t time_after(int64_t start, Timeout timeout) {
    int64_t left = TimerWheel::kNever - 1 - start;
    return start + (timeout.nanoseconds() < left ? timeout.nanoseconds() : left);
  }
  void deliver_to_nobody(Letter* letter);
  void undertake(Letter* letter, uint32_t index);
  void give_birth(Slot& slot, Letter* start);
  void bury(Slot& slot, uint32_t index);
  bool mark_timed(uint64_t id);
  void drop_timers_of(uint64_t id);
  uint32_t take_free_slot();
  void refill_free_slots(std::vector<uint32_t>& out);
  void inject(uint32_t index);
  void wake_idle_core();

  void worker_main(Worker& worker);
  uint32_t next_slot(Env& env, Core& core);
  void look_around(Core& core);
  void expire_timers(Core& core);
  void idle(Env& env, Core& core);
  bool spin(Core& core, int64_t until);
  bool watch_others(Env& env, Core& core);
  bool steal(Core& thief);
  static bool worth_stealing(Core& thief, const Core& victim, int64_t at);
  void gather_senders(Core& core, int64_t at);
  void park(Core& core, int64_t timeout_limit);
  bool others_busy(const Core& core) const;
  uint32_t take_injected(Core& core);

  void monitor_main();
  bool hand_over(Core& core, uint64_t beat);
  Worker* spare_worker();
  void join_retired(std::unique_lock<std::mutex>& lock);
  // The end: terminate.cc.
  void kill_all();
  void say(std::string text) const;
  void report_what_holds();
  void report_stuck_callbacks();
  void stop_threads();
  void terminate_simulation(Env& env);
  void run_leftovers(Env& env);
  std::vector<std::string> leftovers();
  std::vector<std::string> stale_ties();

  const SystemOptions options_;
  const bool simulated_;
  std::vector<std::pair<uint64_t, std::shared_ptr<const void>>> attachments_;
  SlotTable slots_;
  std::vector<std::unique_ptr<Core>> cores_;
  NameTable names_;
  BlockingPool blocking_;

  // Slots that no core keeps, and the number of slots ever used.
  std::mutex slots_mutex_;
  std::vector<uint32_t> free_slots_;
  Atomic<uint32_t> slots_used_{1};  // index 0 is nobody; written under slots_mutex_
  Atomic<uint64_t> spawned_outside_{0};
  Atomic<uint64_t> ended_outside_{0};
  Atomic<uint64_t> outside_references_{0};

  // Slots scheduled by threads without a core, and what a full run queue gave away.
  std::mutex injected_mutex_;
  std::deque<uint32_t> injected_;
  Atomic<uint32_t> injected_count_{0};

  // Idle cores. seq_cst with injected_count_: see park() and inject().
  Atomic<uint64_t> idle_mask_{0};
  Atomic<bool> sentinel_{false};
  Atomic<uint64_t> unmanned_mask_{0};  // cores for which no thread could be started

  // Threads.
  std::mutex handoff_mutex_;                    // (R1)
  std::list<std::unique_ptr<Worker>> workers_;  // guarded by handoff_mutex_
  std::thread monitor_;
  std::mutex monitor_mutex_;
  std::condition_variable monitor_wake_;
  bool monitor_stop_ = false;  // guarded by monitor_mutex_
  Atomic<bool> monitor_asleep_{false};
  bool membarrier_ = false;    // constant after start_threads
  bool spare_warned_ = false;  // guarded by handoff_mutex_
  Atomic<bool> stopping_{false};
  Atomic<bool> ending_{false};

  // Simulation: one thread, no atomics.
  std::vector<uint32_t> runnable_;
  int64_t virtual_now_ = 0;
  uint64_t random_state_;
  uint64_t trace_hash_ = 0xCBF29CE484222325ull;
};

inline void SystemImpl::deliver_message(Process* sender, uint64_t target, Letter* letter) {
  constexpr int kSendCost = 1;
  constexpr uint32_t kBacklogPerUnit = 64;  // letters in the queue that double a send's cost
  uint32_t index = static_cast<uint32_t>(target);
  if (sender != nullptr) [[likely]]
    letter->sender = sender->id();
  if (index == 0 || index >= slots_.slots_max()) [[unlikely]]
    return deliver_to_nobody(letter);
  Slot& slot = slots_[index];
  if (sender != nullptr) [[likely]] {
    uint32_t backlog = slot.backlog.load(relaxed);
    sender->charge(kSendCost + static_cast<int>(backlog / kBacklogPerUnit));
  }
  // A mailbox with a limit is counted by its senders too, as nobody drains while the receiver is
  // busy. The receiver's next drain puts the number right.
  if (slot.letters_max.load(relaxed) != 0) [[unlikely]]
    slot.backlog.fetch_add(1, relaxed);
  letter->generation = static_cast<uint32_t>(target >> 32);
  if (slot.push(letter)) return schedule_woken(index);
  Core* core = held_core();
  const uint32_t runs_on = slot.core.load(relaxed);
  if (core != nullptr && runs_on != core->index + 1) [[unlikely]] {
    ++core->sent_abroad;
    core->abroad = runs_on;
  }
}

/// Says what is `left`, if anything, as SystemOptions::on_leak describes.
void complain(const SystemOptions& options, const std::vector<std::string>& left);

/// The environment of the calling thread. REQUIRES: a library entry from inside a process, or a
/// System method on the stack.
inline Env& env() { return *current_env; }

[[noreturn]] void outside_of_processes();

/// The process whose code runs on this thread; aborts the node outside of any (a broken rule of use
/// that cannot be reported to a process).
inline Process& self_process() {
  if (current_env == nullptr || current_env->process == nullptr) [[unlikely]]
    outside_of_processes();
  return *current_env->process;
}

/// Lets a thread outside use the System for the length of a scope.
class OutsideScope {
 public:
  explicit OutsideScope(SystemImpl& system) : before_(current_env) {
    env_.system = &system;
    current_env = &env_;
  }
  OutsideScope(const OutsideScope&) = delete;
  OutsideScope& operator=(const OutsideScope&) = delete;
  ~OutsideScope() { current_env = before_; }
  Env& env() { return env_; }

 private:
  Env env_;
  Env* const before_;
};

}  // namespace otp::internal
