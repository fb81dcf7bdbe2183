#include "otp/runtime/runtime.h"

#include "otp/runtime/fault.h"

namespace otp {

using namespace internal;

namespace {
constexpr int kSendCost = 1;
constexpr int kReceiveCost = 2;
constexpr uint32_t kBacklogPerUnit =
    64;  // letters in the receiver's queue that double a send's cost
}  // namespace

Pid self() { return self_process().pid(); }

bool trap_exit(bool on) {
  Process& process = self_process();
  bool before = process.trap_exit();
  process.set_trap_exit(on);
  return before;
}

Reference make_ref() {
  LibraryScope scope(env());
  return Reference{0, env().system->new_reference()};
}

void exit(ExitReason reason) { throw Exit(std::move(reason)); }

void exit(Pid pid, ExitReason reason) {
  LibraryScope scope(env());
  Letter* letter = make_signal(LetterKind::exit, std::move(reason));
  letter->sender = env().process == nullptr ? 0 : env().process->id();
  env().system->deliver(pid.id, letter);
}

bool is_alive(Pid pid) { return env().system->is_alive(pid.id); }

void link(Pid pid) {
  LibraryScope scope(env());
  self_process().link(pid);
}

void unlink(Pid pid) {
  LibraryScope scope(env());
  Process& process = self_process();
  process.drain_now();  // an exit signal that has arrived comes before the unlink
  process.unlink(pid);
}

Reference monitor(Pid pid) {
  LibraryScope scope(env());
  return Reference{0, self_process().monitor(pid)};
}

Reference monitor(std::string_view name) {
  LibraryScope scope(env());
  return Reference{0, self_process().monitor(whereis_or_nobody(name), kByName)};
}

bool demonitor(Reference reference, bool flush) {
  LibraryScope scope(env());
  Process& process = self_process();
  bool active = process.demonitor(reference.id);
  if (flush && !active) {
    process.drain_now();
    process.flush_down(reference.id);
  }
  return active;
}

bool register_name(std::string_view name, Pid pid) {
  LibraryScope scope(env());
  if (name.empty() || name == "undefined") return false;
  return env().system->names().add(name, pid.id) == NameTable::Outcome::registered;
}

bool unregister_name(std::string_view name) {
  LibraryScope scope(env());
  return env().system->names().remove(name);
}

std::optional<Pid> whereis(std::string_view name) {
  LibraryScope scope(env());
  uint64_t id = env().system->names().whereis(name);
  if (id == 0) return std::nullopt;
  return Pid{0, id};
}

// ---- Sending
// ------------------------------------------------------------------------------------------

bool Sent::await_ready() const { return self_process().charge(0); }

void Sent::suspend() const {
  LibraryScope scope(env());
  self_process().begin_wait(Process::Wait::yield, TimerWheel::kNever);
}

namespace internal {

void deliver_message(Pid target, Letter* letter) {
  Env& here = env();
  if (Process* sender = here.process) {
    letter->sender = sender->id();
    uint32_t backlog = here.system->backlog_of(target.id);
    sender->charge(kSendCost + static_cast<int>(backlog / kBacklogPerUnit));
  }
  here.system->count_backlog(target.id);
  here.system->deliver(target.id, letter);
}

std::optional<ExitReason> why_not_taken(Pid target) {
  SystemImpl& system = *env().system;
  if (!system.is_alive(target.id)) return ExitReason::noproc();
  if (system.is_full(target.id)) return ExitReason::tagged("mailbox_full", Term(target));
  return std::nullopt;
}

Pid whereis_or_nobody(std::string_view name) { return Pid{0, env().system->names().whereis(name)}; }

// ---- Receiving
// ----------------------------------------------------------------------------------------

bool ReceiveBase::ready() {
  LibraryScope scope(env());
  Process& process = self_process();
  if (!process.charge(kReceiveCost)) return false;  // the slice is used up: others first
  letter_ = process.scan(*this, true);
  if (letter_ != nullptr) return true;
  if (timeout_.nanoseconds() > 0) return false;
  if (!process.drain_now()) return false;  // a signal ends this process: it must not go on
  letter_ = process.scan(*this, false);
  return true;
}

void ReceiveBase::suspend() {
  LibraryScope scope(env());
  Process& process = self_process();
  process.set_receiver(this);
  process.begin_wait(Process::Wait::receive, env().system->deadline_after(timeout_));
}

void ReceiveBase::finish() {
  if (letter_ != nullptr) return;
  LibraryScope scope(env());
  Process& process = self_process();
  letter_ = process.take_received();
  process.abandon_wait();
}

}  // namespace internal

void Yield::suspend() const {
  LibraryScope scope(env());
  self_process().charge(1 << 20);
  self_process().begin_wait(Process::Wait::yield, TimerWheel::kNever);
}

void Sleep::suspend() const {
  LibraryScope scope(env());
  self_process().begin_wait(Process::Wait::sleep, env().system->deadline_after(time_));
}

void Sleep::finish() const {
  LibraryScope scope(env());
  self_process().abandon_wait();
}

// ---- Spawning
// -----------------------------------------------------------------------------------------

namespace internal {

void PlainProcess::on_start() {
  Async<void> root;
  std::exception_ptr thrown;
  {
    UserScope user(env());
    try {
      root = body();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (thrown == nullptr) return start_coroutine(std::move(root));
  ExitReason reason = reason_of(thrown);
  report_crash(*this, reason);
  exit_with(std::move(reason));
}

// Messages stay in the queue until a receive takes them: the coroutine is active for the whole
// life.
void PlainProcess::on_message(Letter* letter) { consume(letter); }

void PlainProcess::on_coroutine_done() {
  ExitReason reason = reason_of(take_coroutine_exception());
  report_crash(*this, reason);
  exit_with(std::move(reason));
}

Spawned spawn_process(std::unique_ptr<Process> body, SpawnTies ties) {
  LibraryScope scope(env());
  Env& here = env();
  Process* parent = here.process;
  Birth birth;
  birth.parent = parent == nullptr ? 0 : parent->id();
  birth.link = ties.link && parent != nullptr;
  if (ties.monitor && parent != nullptr) birth.monitor = here.system->new_reference();
  uint64_t id = here.system->spawn(std::move(body), birth);
  if (id == 0) throw Exit(ExitReason::atom("system_limit"));
  if (parent != nullptr) parent->adopt(id, {.linked = birth.link, .monitor = birth.monitor});
  return {Pid{0, id}, Reference{0, birth.monitor}};
}

// ---- Timers
// -------------------------------------------------------------------------------------------

TimerRef arm_message(Timeout time, Pid target, Letter* letter) {
  Env& here = env();
  if (here.process != nullptr) letter->sender = here.process->id();
  TimerRef timer;
  timer.id =
      here.system->arm_timer(here.system->deadline_after(time), target.id, letter, &timer.core);
  return timer;
}

namespace {
std::optional<Duration> time_left(int64_t deadline) {
  if (deadline == TimerWheel::kNever) return std::nullopt;
  int64_t left = deadline - env().system->now();
  return Duration(left < 0 ? 0 : left);
}
}  // namespace

}  // namespace internal

std::optional<Duration> cancel_timer(TimerRef timer) {
  LibraryScope scope(env());
  if (timer.id == 0) return std::nullopt;
  return internal::time_left(env().system->cancel_timer(timer.core, timer.id));
}

std::optional<Duration> read_timer(TimerRef timer) {
  LibraryScope scope(env());
  if (timer.id == 0) return std::nullopt;
  return internal::time_left(env().system->timer_deadline(timer.core, timer.id));
}

}  // namespace otp
