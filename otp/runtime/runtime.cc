#include "otp/runtime/runtime.h"

#include "otp/runtime/fault.h"

namespace otp {

using namespace internal;

namespace {
constexpr int kReceiveCost = 2;
constexpr int kSpawnCost = 4;
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
  return Reference{0, self_process().monitor_name(name)};
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

Reference monitor(Pid pid, MonitorOptions options) {
  LibraryScope scope(env());
  Process& process = self_process();
  const Reference reference{0, process.monitor(pid)};
  switch (options.alias) {
    case MonitorAlias::none: break;
    case MonitorAlias::explicit_unalias: process.add_alias(reference.id, 0); break;
    case MonitorAlias::demonitor: process.add_alias(reference.id, Process::kWithMonitor); break;
    case MonitorAlias::reply_demonitor:
      process.add_alias(reference.id, Process::kWithMonitor | Process::kOneMessage);
      break;
  }
  if (options.tag.kind() != Term::Kind::none) {
    process.tag_monitor(reference.id, std::move(options.tag));
  }
  return reference;
}

Alias alias(AliasMode mode) {
  LibraryScope scope(env());
  Process& process = self_process();
  const uint64_t reference = process.new_reference();
  process.add_alias(reference, mode == AliasMode::reply ? Process::kOneMessage : uint8_t{0});
  return Alias{process.pid(), Reference{0, reference}};
}

bool unalias(const Alias& alias) {
  LibraryScope scope(env());
  Process& process = self_process();
  if (alias.owner != process.pid()) return false;
  process.drain_now();  // what was sent before, and has arrived, comes through
  return process.remove_alias(alias.reference.id);
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

bool Sent::await_ready() const { return self_process().charge(0); }

void Sent::suspend() const {
  LibraryScope scope(env());
  self_process().begin_wait(Process::Wait::yield, TimerWheel::kNever);
}

namespace internal {

void deliver_message(Pid target, Letter* letter) {
  Env& here = env();
  here.system->deliver_message(here.process, target.id, letter);
}

void deliver_aliased(const Alias& alias, Letter* letter) {
  letter->reference = alias.reference.id;
  deliver_message(alias.owner, letter);
}

std::optional<ExitReason> why_not_taken(Pid target) {
  SystemImpl& system = *env().system;
  if (!system.is_alive(target.id)) return ExitReason::noproc();
  if (system.is_full(target.id)) return ExitReason::tagged("mailbox_full", Term(target));
  return std::nullopt;
}

Down down_in(const Process& process, Letter& letter) {
  Down down{Reference{0, letter.reference}, Pid{0, letter.sender}, letter.as<ExitReason>()};
  if (letter.flags & kByName) {
    down.pid = Pid();
    down.name = process.monitored_name(letter.reference);
  }
  if (letter.flags & kTagged) down.tag = letter.tag();
  return down;
}

Pid whereis_or_nobody(std::string_view name) { return Pid{0, env().system->names().whereis(name)}; }

// ---- Receiving

bool ReceiveBase::ready() {
  LibraryScope scope(env());
  Process& process = self_process();
  process.begin_scan();
  if (!process.charge(kReceiveCost)) return false;  // the slice is used up: others first
  letter_ = process.scan(*this);
  if (letter_ != nullptr) return true;
  if (timeout_.nanoseconds() > 0) return false;
  if (!process.drain_now()) return false;  // a signal ends this process: it must not go on
  letter_ = process.scan(*this);
  return true;
}

void ReceiveBase::suspend() {
  LibraryScope scope(env());
  Process& process = self_process();
  process.set_receiver(this);
  process.begin_wait(Process::Wait::receive, process.system().core_deadline_after(timeout_));
}

void ReceiveBase::finish() {
  if (letter_ != nullptr) return;
  LibraryScope scope(env());
  Process& process = self_process();
  letter_ = process.take_received();
  process.abandon_wait();
  if (thrown_ != nullptr) std::rethrow_exception(std::move(thrown_));
}

}  // namespace internal

void Yield::suspend() const {
  LibraryScope scope(env());
  Process& process = self_process();
  process.end_slice();
  process.begin_wait(Process::Wait::yield, TimerWheel::kNever);
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
  report_crash(*this, reason, thrown);
  exit_with(std::move(reason));
}

// Messages stay in the queue until a receive takes them: the coroutine is active for the whole
// life.
void PlainProcess::on_message(Letter* letter) { consume(letter); }

void PlainProcess::on_coroutine_done() {
  const std::exception_ptr thrown = take_coroutine_exception();
  if (thrown == nullptr) return exit_with(ExitReason::normal());
  ExitReason reason = reason_of(thrown);
  report_crash(*this, reason, thrown);
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
  if (parent != nullptr) {
    parent->charge(kSpawnCost);
    if (birth.link || birth.monitor != 0) {
      parent->adopt(id, {.linked = birth.link, .monitor = birth.monitor});
    }
  }
  return {Pid{0, id}, Reference{0, birth.monitor}};
}

// ---- Timers

TimerRef arm_message(Timeout time, Pid target, Letter* letter) {
  Env& here = env();
  if (here.process != nullptr) letter->sender = here.process->id();
  TimerRef timer;
  timer.id =
      here.system->arm_message(here.system->deadline_after(time), target.id, letter, &timer.core);
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
