#include "otp/runtime/system_impl.h"

#include <cstdlib>

#include "otp/runtime/cpu_count.h"
#include "otp/runtime/runtime_log.h"

namespace otp::internal {

constinit thread_local Env* current_env = nullptr;

namespace {

constexpr size_t kFreeSlotsKept = 4096;  // by a core, before it gives half back
constexpr size_t kFreeSlotsTaken = 64;   // from the System at once

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
    cores_.push_back(std::make_unique<Core>(*this, i, count == 1, now(), std::move(poller)));
  }
}

SystemImpl::~SystemImpl() = default;

uint64_t SystemImpl::random() { return mix(random_state_ += 0x9E3779B97F4A7C15ull); }

void outside_of_processes() {
  OTP_CHECK(false, "called outside of a process; threads outside use System's methods");
  std::abort();
}

void run_payload_destructor(Letter* letter) noexcept {
  letter->flags &= static_cast<uint8_t>(~kPayload);
  if (letter->holds_reason()) {
    letter->as<ExitReason>().~ExitReason();
    if (letter->flags & kTagged) letter->tag().~Term();
  } else if (letter->operation->type->destroy != nullptr) {
    letter->operation->type->destroy(letter->payload());
  }
}

// ---- Slots, births and deaths

uint64_t SystemImpl::new_reference_outside() {
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

uint32_t SystemImpl::take_free_slot() {
  if (Core* core = held_core()) {
    std::vector<uint32_t>& free = core->free_slots;
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
  uint32_t index = take_free_slot();
  if (index == 0) return 0;
  Slot& slot = slots_[index];
  uint64_t generation = static_cast<uint64_t>(slot.generation()) + 1;
  uint64_t id = generation << 32 | index;
  body->system_ = this;
  body->slot_ = &slot;
  body->drops_timers_ = simulated_;
  body->id_ = id;
  body->parent_ = birth.parent;
  body->parent_linked_ = birth.link;
  if (env.process != nullptr) body->group_ = env.process->group_;
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
    case LetterKind::info:
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
  if (state & kTimed) drop_timers_of(id);
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

uint64_t SystemImpl::process_count() const {
  // ended is read first: a process counted as ended was counted as spawned before.
  uint64_t ended = ended_outside_.load(acquire);
  for (auto& core : cores_) ended += core->ended.load(acquire);
  uint64_t spawned = spawned_outside_.load(acquire);
  for (auto& core : cores_) spawned += core->spawned.load(acquire);
  return spawned - ended;
}

// ---- Scheduling

void SystemImpl::schedule_tail(uint32_t index) {
  if (simulated_) {
    require_library(*current_env);
    return runnable_.push_back(index);
  }
  Core* core = held_core();
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
                              uint16_t* core_index, bool goes_with_target) {
  Core* mine = held_core();
  Core& core = mine != nullptr ? *mine : *cores_[0];
  *core_index = static_cast<uint16_t>(core.index);
  bool earlier = false;
  TimerId timer;
  {
    std::lock_guard lock(core.wheel_mutex);
    timer = core.wheel.arm(deadline, target, letter, goes_with_target);
    if (deadline < core.next_timer.load(relaxed)) {
      core.next_timer.store(deadline, relaxed);
      earlier = true;
    }
  }
  if (earlier && mine == nullptr && !simulated_) core.poller->wake();
  return timer;
}

// Armed first, marked then: a process that dies in between either is seen dead here or sees the
// mark, and the mutex of the wheel shows it the timer.
TimerId SystemImpl::arm_message(int64_t deadline, uint64_t target, Letter* letter,
                                uint16_t* core_index) {
  TimerId timer = arm_timer(deadline, target, letter, core_index, true);
  if (!mark_timed(target)) cancel_timer(*core_index, timer);
  return timer;
}

// False: that process is dead.
bool SystemImpl::mark_timed(uint64_t id) {
  if (!is_alive(id)) return false;
  Atomic<uint64_t>& state = slot_of(id).state;
  // acquire: the mark may be another thread's; acq_rel: the dying exchange must see ours.
  uint64_t seen = state.load(acquire);
  do {
    if ((seen >> 32) != (id >> 32) || !(seen & kAlive)) return false;
    if (seen & kTimed) return true;
  } while (!state.compare_exchange_weak(seen, seen | kTimed, acq_rel, acquire));
  return true;
}

void SystemImpl::drop_timers_of(uint64_t id) {
  for (auto& core : cores_) {
    std::lock_guard lock(core->wheel_mutex);
    core->wheel.cancel_all(id);
  }
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

}  // namespace otp::internal
