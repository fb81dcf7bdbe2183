#include "otp/runtime/system_impl.h"

#include <ctime>

#include "otp/runtime/cpu_count.h"
#include "otp/runtime/runtime_log.h"

namespace otp::internal {

constinit thread_local Env* current_env = nullptr;

namespace {

constexpr size_t kFreeSlotsKept = 4096;  // by a core, before it gives half back
constexpr size_t kFreeSlotsTaken = 64;   // from the System at once
constexpr uint32_t kLettersPerUndertaking = 256;

uint64_t mix(uint64_t value) {  // splitmix64's finaliser
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

void count_one(Core* core, Atomic<uint64_t> Core::* counter, Atomic<uint64_t>& outside) {
  if (core != nullptr) {
    Atomic<uint64_t>& mine = core->*counter;
    mine.store(mine.load(relaxed) + 1, relaxed);  // one writer: the core's holder
  } else {
    outside.fetch_add(1, relaxed);
  }
}

}  // namespace

SystemImpl::SystemImpl(SystemOptions options, bool simulated)
    : options_(std::move(options)),
      simulated_(simulated),
      slots_(options_.processes_max),
      names_(*this),
      blocking_(options_.blocking_threads_max, options_.blocking_queue_max),
      random_state_(mix(options_.seed + 0x9E3779B97F4A7C15ull)) {
  uint32_t count = simulated_ ? 1 : options_.cores == 0 ? usable_processors() : options_.cores;
  if (count > 64) count = 64;
  for (uint32_t i = 0; i < count; ++i) {
    auto poller = options_.poller ? options_.poller(i) : make_plain_poller();
    cores_.push_back(std::make_unique<Core>(*this, i, now(), std::move(poller)));
  }
}

SystemImpl::~SystemImpl() = default;

int64_t SystemImpl::monotonic_now() {
  timespec at;
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1'000'000'000ll + at.tv_nsec;
}

uint64_t SystemImpl::random() { return mix(random_state_ += 0x9E3779B97F4A7C15ull); }

Process& self_process() {
  OTP_CHECK(current_env != nullptr && current_env->process != nullptr,
            "called outside of a process; threads outside use System's methods");
  return *current_env->process;
}

// ---- Slots, births and deaths
// -------------------------------------------------------------------------

uint64_t SystemImpl::new_reference() {
  Core* core = current_env->core;
  if (core != nullptr) {
    return (static_cast<uint64_t>(core->index) + 1) << 48 | ++core->next_reference;
  }
  return 0xFFFFull << 48 | (outside_references_.fetch_add(1, relaxed) + 1);
}

void SystemImpl::refill_free_slots(std::vector<uint32_t>& out) {
  std::lock_guard lock(slots_mutex_);
  for (size_t i = 0; i < kFreeSlotsTaken; ++i) {
    if (!free_slots_.empty()) {
      out.push_back(free_slots_.back());
      free_slots_.pop_back();
    } else if (uint32_t used = slots_used_.load(relaxed); used < slots_.slots_max()) {
      out.push_back(used);
      slots_used_.store(used + 1, release);  // pairs with the acquire in kill_all
    }
  }
}

uint32_t SystemImpl::take_free_slot(Env* env) {
  if (env->core != nullptr) {
    std::vector<uint32_t>& free = env->core->free_slots;
    if (free.empty()) refill_free_slots(free);
    if (free.empty()) return 0;
    uint32_t index = free.back();
    free.pop_back();
    return index;
  }
  std::vector<uint32_t> few;
  refill_free_slots(few);
  if (few.empty()) return 0;
  uint32_t index = few.back();
  few.pop_back();
  std::lock_guard lock(slots_mutex_);
  free_slots_.insert(free_slots_.end(), few.begin(), few.end());
  return index;
}

uint64_t SystemImpl::spawn(std::unique_ptr<Process> body, const Birth& birth) {
  Env& env = *current_env;
  if (ending_.load(relaxed)) return 0;
  uint32_t index = take_free_slot(&env);
  if (index == 0) return 0;
  Slot& slot = slots_[index];
  uint64_t generation = static_cast<uint64_t>(slot.generation()) + 1;
  uint64_t id = generation << 32 | index;
  body->system_ = this;
  body->slot_ = &slot;
  body->id_ = id;
  body->parent_ = birth.parent;
  if (birth.link) body->relations().links.insert(birth.parent).first->unlinking = 0;
  if (birth.monitor != 0) body->watch(birth.monitor, birth.parent);
  if (const MailboxLimit* limit = body->mailbox_limit()) {
    const uint64_t most = limit->letters_max;
    slot.letters_max.store(most > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(most), relaxed);
  }
  // release: is_alive's acquire sees a complete birth (S5). The slot is ours until the push below.
  slot.state.store(generation << 32 | kAlive, release);
  count_one(env.core, &Core::spawned, spawned_outside_);
  Letter* start = allocate_letter(sizeof(Process*));
  start->kind = LetterKind::start;
  start->generation = static_cast<uint32_t>(generation);
  new (start->payload()) Process*(body.release());
  if (slot.push(start)) schedule_woken(index);
  return id;
}

void SystemImpl::deliver_to_nobody(Letter* letter) {
  letter->generation = 0;
  undertake(letter, 0);
  free_letter(letter);
}

// What is sent to the dead: questions get the answer that there is nobody, the rest is dropped.
void SystemImpl::undertake(Letter* letter, uint32_t index) {
  Letter* answer = nullptr;
  switch (letter->kind) {
    case LetterKind::call:
    case LetterKind::system:
      answer = make_signal(LetterKind::reply, ExitReason::noproc());
      answer->flags |= kFailed;
      break;
    case LetterKind::monitor: answer = make_signal(LetterKind::down, ExitReason::noproc()); break;
    case LetterKind::link: answer = make_signal(LetterKind::link_exit, ExitReason::noproc()); break;
    case LetterKind::unlink: answer = make_signal(LetterKind::unlink_ack); break;
    default: return;
  }
  answer->sender = static_cast<uint64_t>(letter->generation) << 32 | index;
  answer->reference = letter->reference;
  answer->flags |= letter->flags & kByName;
  if (letter->sender != 0) {
    deliver(letter->sender, answer);
  } else {
    free_letter(answer);
  }
}

void SystemImpl::give_birth(Slot& slot, Letter* start) {
  slot.body = start->as<Process*>();
  slot.body->consume(start);
}

void SystemImpl::bury(Slot& slot, uint32_t index) {
  Env& env = *current_env;
  Process* body = slot.body;
  uint64_t id = body->id_;
  // acq_rel: acquire the name table's mark; release for whoever sees the slot dead (S5, N1).
  uint64_t state = slot.state.exchange(id >> 32 << 32, acq_rel);
  if (state & kNamed) names_.remove_process(id);
  body->announce_exit();
  slot.body = nullptr;
  slot.backlog.store(0, relaxed);
  slot.letters_max.store(0, relaxed);
  delete body;
  count_one(env.core, &Core::ended, ended_outside_);
  if (slot.generation() >= options_.generations_max) return;  // retired (S6)
  if (env.core != nullptr) {
    std::vector<uint32_t>& free = env.core->free_slots;
    free.push_back(index);
    if (free.size() > kFreeSlotsKept) {
      std::lock_guard lock(slots_mutex_);
      free_slots_.insert(free_slots_.end(), free.end() - kFreeSlotsKept / 2, free.end());
      free.resize(free.size() - kFreeSlotsKept / 2);
    }
  } else {
    std::lock_guard lock(slots_mutex_);
    free_slots_.push_back(index);
  }
}

void SystemImpl::run_slot(Env& env, uint32_t index) {
  Slot& slot = slots_[index];
  uint32_t undertaken = 0;
  for (;;) {
    if (Process* process = slot.body; process != nullptr) {
      env.process = process;
      Process::RunEnd end = process->run(env);
      env.process = nullptr;
      // What was handled since the last drain is no backlog; a sender that waits for room would
      // wait for ever.
      if (process->mailbox_limit() != nullptr) {
        slot.backlog.store(process->queue_length(), relaxed);
      }
      if (end == Process::RunEnd::more) return schedule_tail(index);
      if (end == Process::RunEnd::idle) break;
      bury(slot, index);
    }
    while (slot.body == nullptr) {
      Letter* letter = slot.next_letter();
      if (letter == nullptr || ++undertaken > kLettersPerUndertaking) break;
      if (letter->kind == LetterKind::start) {
        give_birth(slot, letter);
        env.process = slot.body;
        slot.body->on_start();
        env.process = nullptr;
      } else {
        undertake(letter, index);
        destroy_letter_payload(letter);
        letter->flags |= kConsumed;  // it is the anchor: freed when passed
      }
    }
    if (slot.body == nullptr) break;
  }
  if (!slot.try_sleep()) schedule_tail(index);
}

uint64_t SystemImpl::process_count() const {
  // ended is read first: a process counted as ended was counted as spawned before.
  uint64_t ended = ended_outside_.load(acquire);
  for (auto& core : cores_) ended += core->ended.load(acquire);
  uint64_t spawned = spawned_outside_.load(acquire);
  for (auto& core : cores_) spawned += core->spawned.load(acquire);
  return spawned - ended;
}

// ---- Scheduling
// ---------------------------------------------------------------------------------------

void SystemImpl::schedule_woken(uint32_t index) {
  if (simulated_) return runnable_.push_back(index);
  Core* core = current_env->core;
  if (core == nullptr) return inject(index);
  if (uint32_t displaced = core->queue.exchange_lifo(index)) schedule_tail(displaced);
}

void SystemImpl::schedule_tail(uint32_t index) {
  if (simulated_) return runnable_.push_back(index);
  Core* core = current_env->core;
  if (core == nullptr) return inject(index);
  while (!core->queue.push(index)) {
    std::array<uint32_t, RunQueue::kCapacity / 2> half;
    uint32_t count = core->queue.take_half(half);
    std::lock_guard lock(injected_mutex_);
    injected_.insert(injected_.end(), half.begin(), half.begin() + count);
    injected_count_.store(static_cast<uint32_t>(injected_.size()), seq_cst);
  }
}

void SystemImpl::inject(uint32_t index) {
  {
    std::lock_guard lock(injected_mutex_);
    injected_.push_back(index);
    // seq_cst: this store and the load of idle_mask_ below stand against park()'s write of
    // idle_mask_ and its load of this count. In every order one of the two sides sees the other: no
    // lost wake-up.
    injected_count_.store(static_cast<uint32_t>(injected_.size()), seq_cst);
  }
  wake_idle_core();
}

void SystemImpl::wake_idle_core() {
  uint64_t idle = idle_mask_.load(seq_cst);
  while (idle != 0) {
    uint32_t index = static_cast<uint32_t>(__builtin_ctzll(idle));
    if (idle_mask_.compare_exchange_weak(idle, idle & ~(1ull << index), seq_cst)) {
      cores_[index]->poller->wake();
      return;
    }
  }
}

uint32_t SystemImpl::take_injected(Core& core) {
  if (injected_count_.load(relaxed) == 0) return 0;
  std::lock_guard lock(injected_mutex_);
  if (injected_.empty()) return 0;
  uint32_t first = injected_.front();
  injected_.pop_front();
  // A fair share along with it, so that the mutex is taken once for many.
  size_t share = injected_.size() / cores_.size();
  for (size_t i = 0; i < share && i < RunQueue::kCapacity / 4; ++i) {
    if (!core.queue.push(injected_.front())) break;
    injected_.pop_front();
  }
  injected_count_.store(static_cast<uint32_t>(injected_.size()), seq_cst);
  return first;
}

TimerId SystemImpl::arm_timer(int64_t deadline, uint64_t target, Letter* letter,
                              uint16_t* core_index) {
  Core* mine = current_env->core;
  Core& core = mine != nullptr ? *mine : *cores_[0];
  *core_index = static_cast<uint16_t>(core.index);
  bool earlier = false;
  TimerId timer;
  {
    std::lock_guard lock(core.wheel_mutex);
    timer = core.wheel.arm(deadline, target, letter);
    if (deadline < core.next_timer.load(relaxed)) {
      core.next_timer.store(deadline, relaxed);
      earlier = true;
    }
  }
  if (earlier && mine == nullptr && !simulated_) core.poller->wake();
  return timer;
}

int64_t SystemImpl::cancel_timer(uint16_t core_index, TimerId timer) {
  Core& core = *cores_[core_index];
  std::lock_guard lock(core.wheel_mutex);
  return core.wheel.cancel(timer);
}

int64_t SystemImpl::timer_deadline(uint16_t core_index, TimerId timer) {
  Core& core = *cores_[core_index];
  std::lock_guard lock(core.wheel_mutex);
  return core.wheel.deadline(timer);
}

void SystemImpl::expire_timers(Core& core) {
  int64_t at = now();
  if (at < core.next_timer.load(relaxed)) return;
  std::vector<std::pair<uint64_t, Letter*>> due;
  {
    std::lock_guard lock(core.wheel_mutex);
    core.wheel.expire(at,
                      [&](uint64_t target, Letter* letter) { due.emplace_back(target, letter); });
    core.next_timer.store(core.wheel.next_event(), relaxed);
  }
  for (auto& [target, letter] : due) deliver(target, letter);
}

// ---- Simulation
// ---------------------------------------------------------------------------------------

bool SystemImpl::step(Env& env) {
  Core& core = *cores_[0];
  expire_timers(core);
  core.poller->poll();
  if (runnable_.empty()) return false;
  size_t pick = static_cast<size_t>(random() % runnable_.size());
  uint32_t index = runnable_[pick];
  runnable_[pick] = runnable_.back();
  runnable_.pop_back();
  trace(index);
  trace(static_cast<uint64_t>(virtual_now_));
  run_slot(env, index);
  return true;
}

bool SystemImpl::advance_to_next_timer(Env&, int64_t limit) {
  Core& core = *cores_[0];
  int64_t next;
  {
    std::lock_guard lock(core.wheel_mutex);
    next = core.wheel.next_event();
  }
  if (next == TimerWheel::kNever || next > limit) return false;
  if (next > virtual_now_) virtual_now_ = next;
  core.next_timer.store(virtual_now_, relaxed);
  expire_timers(core);
  return true;
}

// ---- The end of a System
// ------------------------------------------------------------------------------

void SystemImpl::kill_all() {
  uint32_t used = slots_used_.load(acquire);
  for (uint32_t index = 1; index < used; ++index) {
    uint64_t state = slots_[index].state.load(acquire);
    if (!(state & kAlive)) continue;
    deliver((state >> 32) << 32 | index, make_signal(LetterKind::exit, ExitReason::kill()));
  }
}

void SystemImpl::report_what_holds() {
  std::string text =
      "terminate: still waiting for " + std::to_string(process_count()) + " processes:";
  uint32_t used = slots_used_.load(acquire);
  int shown = 0;
  for (uint32_t index = 1; index < used && shown < 20; ++index) {
    uint64_t state = slots_[index].state.load(acquire);
    if (!(state & kAlive)) continue;
    uint64_t id = (state >> 32) << 32 | index;
    text += " " + Pid{0, id}.to_string();
    if (std::string name = names_.name_of(id); !name.empty()) text += " (" + name + ")";
    ++shown;
  }
  log_runtime(log(), LogLevel::warning, text);
}

void SystemImpl::terminate() {
  OutsideScope outside(*this);
  ending_.store(true, seq_cst);
  if (simulated_) {
    Env& env = outside.env();
    env.core = cores_[0].get();
    while (process_count() > 0) {
      kill_all();
      while (step(env) || (process_count() > 0 && advance_to_next_timer(env, INT64_MAX - 1))) {}
    }
    while (step(env)) {}
    return;
  }
  int64_t report_at = now() + options_.terminate_report_after.count();
  for (int round = 0; process_count() > 0; ++round) {
    kill_all();
    // The processes run on other threads: nothing tells this one when the last has ended, so it
    // looks, at first often.
    for (int look = 0; look < 50 && process_count() > 0; ++look) {
      timespec pause{0, round == 0 && look < 20 ? 50'000 : 1'000'000};
      ::nanosleep(&pause, nullptr);
    }
    if (now() > report_at) {
      report_what_holds();
      report_at = now() + options_.terminate_report_after.count();
    }
  }
  blocking_.stop();
  stopping_.store(true, seq_cst);
  {
    std::lock_guard lock(monitor_mutex_);
    monitor_stop_ = true;
  }
  monitor_wake_.notify_all();
  if (monitor_.joinable()) monitor_.join();
  {
    std::lock_guard lock(handoff_mutex_);
    for (auto& worker : workers_) worker->assigned.notify_all();
  }
  for (auto& core : cores_) core->poller->wake();
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  run_leftovers(outside.env());
}

// Letters between the dead are left: their slots' undertakers run once more, on this thread.
void SystemImpl::run_leftovers(Env& env) {
  for (bool any = true; any;) {
    any = false;
    for (auto& core : cores_) {
      env.core = core.get();
      core->owner.store(&env, relaxed);
      while (uint32_t index = next_slot(env, *core)) {
        any = true;
        run_slot(env, index);
      }
    }
  }
}

}  // namespace otp::internal
