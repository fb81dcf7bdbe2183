// The end of a System: every process is killed, what holds that up is said, and what is left is a
// leak.

#include <ctime>

#include "otp/base/stack_trace.h"
#include "otp/runtime/leftovers.h"
#include "otp/runtime/runtime_log.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {

constexpr int kHoldersShown = 20;

}  // namespace

void SystemImpl::kill_all() {
  uint32_t used = slots_used_.load(acquire);
  for (uint32_t index = 1; index < used; ++index) {
    uint64_t state = slots_[index].state.load(acquire);
    if (!(state & kAlive)) continue;
    deliver((state >> 32) << 32 | index, make_signal(LetterKind::exit, ExitReason::kill()));
  }
}

// The end must be heard although nobody listens to the log.
void SystemImpl::say(std::string text) const {
  if (log() != nullptr) return log_runtime(log(), LogLevel::warning, std::move(text));
  std::fprintf(stderr, "%s\n", text.c_str());
}

// Each process that still lives is asked to say itself what it waits for, as only its own thread
// may look at it. One that runs a callback cannot answer: its thread's stack is printed.
void SystemImpl::report_what_holds() {
  std::string text =
      "terminate: still waiting for " + std::to_string(process_count()) + " processes:";
  uint32_t used = slots_used_.load(acquire);
  int shown = 0;
  for (uint32_t index = 1; index < used && shown < kHoldersShown; ++index) {
    uint64_t state = slots_[index].state.load(acquire);
    if (!(state & kAlive)) continue;
    uint64_t id = (state >> 32) << 32 | index;
    text += " " + Pid{0, id}.to_string();
    if (std::string name = names_.name_of(id); !name.empty()) text += " (" + name + ")";
    Letter* question = make_signal(LetterKind::wake);
    question->reference = kSayWhatHolds;
    deliver(id, question);
    ++shown;
  }
  say(std::move(text));
  report_stuck_callbacks();
}

void SystemImpl::hear_what_holds(const Process& process) { say("terminate: " + describe(process)); }

void SystemImpl::report_stuck_callbacks() {
  std::lock_guard lock(handoff_mutex_);
  for (auto& worker : workers_) {
    Env& holder = worker->env;
    // acquire: pairs with the release that began the callback.
    if (worker->retired || holder.in_library.load(acquire) != 0) continue;
    std::string text = "terminate: a callback ";
    // A thread that lost its core takes our mutex before it leaves the callback: its process stays.
    if (holder.core != nullptr && holder.core->owner.load(relaxed) != &holder &&
        holder.process != nullptr) {
      text += "of " + process_text(*this, holder.process->id()) + " ";
    }
    text += "does not end";
    auto stack = capture_thread(holder.tid.load(relaxed), std::chrono::milliseconds(100));
    if (stack) text += "; it is at\n" + stack->to_string();
    say(std::move(text));
  }
}

void SystemImpl::terminate() {
  OutsideScope outside(*this);
  if (simulated_) {
    outside.env().core = cores_[0].get();
    cores_[0]->owner.store(&outside.env(), relaxed);  // (R1), with one thread
    std::vector<std::string> ties = stale_ties();
    ending_.store(true, seq_cst);
    terminate_simulation(outside.env());
    std::vector<std::string> left = leftovers();
    left.insert(left.end(), ties.begin(), ties.end());
    return complain(options_, left);
  }
  ending_.store(true, seq_cst);
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
  blocking_.stop(options_.terminate_report_after, [this](size_t running) {
    say("terminate: still waiting for " + std::to_string(running) +
        " functions given to the blocking lane");
  });
  stop_threads();
  run_leftovers(outside.env());
  complain(options_, leftovers());
}

void SystemImpl::stop_threads() {
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
}

void SystemImpl::terminate_simulation(Env& env) {
  bool asked = false;
  while (process_count() > 0) {
    kill_all();
    while (step(env) || (process_count() > 0 && advance_to_next_timer(env, INT64_MAX - 1))) {}
    if (process_count() == 0) break;
    // The kill letters themselves make each of them run once: what is still there after that waits
    // for an operation that nothing can answer any more.
    OTP_CHECK(!asked, "a simulation cannot end: %s",
              "its last processes wait for operations that will never answer");
    asked = true;
    report_what_holds();
    while (step(env)) {}
  }
  while (step(env)) {}
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

// ---- The leak check

void complain(const SystemOptions& options, const std::vector<std::string>& left) {
  if (left.empty()) return;
  std::string text = "a System has ended and left behind:\n";
  for (const std::string& each : left) text += "  " + each + "\n";
  if (options.on_leak) return options.on_leak(text);
  OTP_CHECK(left.empty(), "%s", text.c_str());
}

std::vector<std::string> SystemImpl::leftovers() {
  std::vector<std::string> left;
  uint32_t used = slots_used_.load(acquire);
  for (uint32_t index = 1; index < used; ++index) {
    Slot& slot = slots_[index];
    if (slot.body != nullptr) left.push_back("process " + describe(*slot.body));
    if (slot.head.load(acquire) == nullptr) continue;
    Letter* letter = slot.anchor != nullptr ? slot.anchor->next.load(acquire) : slot.first;
    if (letter == nullptr) left.push_back("slot " + std::to_string(index) + ", awake");
    for (; letter != nullptr; letter = letter->next.load(acquire)) {
      left.push_back("a letter that nobody looked at: " +
                     describe(*letter, static_cast<uint64_t>(letter->generation) << 32 | index));
    }
  }
  for (auto& [name, id] : names_.all()) {
    left.push_back("name " + name + " of " + Pid{0, id}.to_string());
  }
  for (auto& core : cores_) {
    // A timer that sends to a name belongs to the System and goes with it. Any other belongs to a
    // process, which must have taken it along.
    std::lock_guard lock(core->wheel_mutex);
    core->wheel.for_each([&](uint64_t target, Letter& letter, bool goes_with_target) {
      if (letter.kind != LetterKind::timer && !goes_with_target) return;
      left.push_back((letter.kind == LetterKind::timer ? "the wait timer of " : "a timer for ") +
                     Pid{0, target}.to_string() + ", which is dead");
    });
  }
  return left;
}

// A process that sleeps has seen everything that was sent to it, the ends of others included. So
// what it keeps of somebody dead is kept for ever.
std::vector<std::string> SystemImpl::stale_ties() {
  std::vector<std::string> stale;
  uint32_t used = slots_used_.load(acquire);
  for (uint32_t index = 1; index < used; ++index) {
    Slot& slot = slots_[index];
    if (slot.body == nullptr || slot.head.load(acquire) != nullptr) continue;
    Process::Relations* relations = slot.body->relations_if_any();
    if (relations == nullptr) continue;
    auto note = [&](const char* what, uint64_t other) {
      if (is_alive(other)) return;
      stale.push_back(describe(*slot.body) + " keeps " + what + Pid{0, other}.to_string() +
                      ", which is dead");
    };
    relations->links.for_each(
        [&](uint64_t peer, Process::Relations::Link&) { note("a link to ", peer); });
    relations->monitors.for_each([&](uint64_t, Process::Relations::Monitor& monitor) {
      note("a monitor of ", monitor.target);
    });
    relations->watchers.for_each([&](uint64_t, Process::Relations::Watcher& watcher) {
      note("what it owes to ", watcher.watcher);
    });
  }
  return stale;
}

}  // namespace otp::internal
