#include "otp/behaviour/sys_process.h"

#include <algorithm>

#include "otp/base/throw_stack.h"

namespace otp {

using namespace internal;

// ---- Events

namespace sys {

void Event::format(BoundedWriter& out) const {
  if (!is_out()) return format_letter(out, *letter);
  out.write("reply ");
  if (!letter->has_payload()) {
    out.write("ok");
  } else if (letter->holds_reason()) {
    out.term(letter->as<ExitReason>().term());
  } else {
    letter->operation->type->format(out, letter->payload());
  }
  out.write(" to ").write(peer.to_string());
}

std::string Event::to_string(size_t bytes_max) const {
  BoundedWriter out(bytes_max + bytes_max);
  write_guarded(out, bytes_max, [this](BoundedWriter& part) { format(part); });
  return out.take();
}

}  // namespace sys

namespace internal {

namespace {

constexpr size_t kStatusStateBytesMax = 8 * 1024;

sys::Event::Kind event_kind(LetterKind kind) {
  switch (kind) {
    case LetterKind::call: return sys::Event::Kind::call;
    case LetterKind::cast: return sys::Event::Kind::cast;
    case LetterKind::reply: return sys::Event::Kind::reply;
    case LetterKind::down: return sys::Event::Kind::down;
    case LetterKind::exit:
    case LetterKind::link_exit: return sys::Event::Kind::exit;
    default: return sys::Event::Kind::info;
  }
}

sys::Event event_of(Letter& letter, uint64_t peer) {
  sys::Event event{.kind = event_kind(letter.kind), .peer = Pid{0, peer}, .letter = &letter};
  if (letter.operation != nullptr) event.type = letter.operation->type->name;
  return event;
}

// The content was given to the callback: what can be told is what a copy has left.
void format_last(BoundedWriter& out, const Letter& letter) {
  if (!letter.has_payload() || letter.holds_reason()) return format_letter(out, letter);
  letter.operation->type->format_taken(out, letter.payload());
}

// What a suspended process takes from its mailbox.
class SystemReceive final : public ReceiveBase {
 public:
  explicit SystemReceive(uint64_t parent) : ReceiveBase(infinity), parent_(parent) {}
  bool await_ready() { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  Letter* await_resume() {
    finish();
    return letter_;
  }

 private:
  bool accepts(Letter& letter) override {
    if (letter.kind == LetterKind::system) return true;
    const bool exit = letter.kind == LetterKind::exit || letter.kind == LetterKind::link_exit;
    return exit && parent_ != 0 && letter.sender == parent_;
  }
  const uint64_t parent_;
};

}  // namespace

// ---- Suspension

void SysProcess::suspend_now() {
  if (suspended_) return;
  suspended_ = true;
  start_coroutine(suspend_loop(*this, idle_deadline()));
}

// OTP: sys:suspend_loop. An idle timeout that ran before goes on afterwards.
Async<void> SysProcess::suspend_loop(SysProcess& self, int64_t idle_deadline) {
  while (self.suspended_) {
    Letter* letter = co_await SystemReceive(self.linked_parent());
    LibraryScope scope(env());
    if (letter->kind == LetterKind::system) {
      self.handle_system(letter);
      if (self.stopping()) co_return;
      continue;
    }
    ExitReason reason = letter->as<ExitReason>();
    self.consume(letter);
    self.stop_with(std::move(reason));
    co_return;
  }
  LibraryScope scope(env());
  if (idle_deadline != TimerWheel::kNever) self.wait_for_message(idle_deadline);
}

// ---- Answers

void SysProcess::reply_system(Letter& letter, Letter* answer) {
  answer->sender = id();
  answer->reference = letter.reference;
  system().deliver(letter.sender, answer);
  consume(&letter);
}

void SysProcess::refuse_system(Letter& letter, ExitReason reason) {
  Letter* answer = make_signal(LetterKind::reply, std::move(reason));
  answer->flags |= kFailed;
  reply_system(letter, answer);
}

std::string SysProcess::state_text(size_t bytes_max) {
  BoundedWriter out(bytes_max + kReportBytesMax);
  write_guarded(out, bytes_max, [this](BoundedWriter& part) { print_state(part); });
  return out.take();
}

sys::Status SysProcess::status() {
  sys::Status status;
  status.pid = pid();
  status.name = system().names().name_of(id());
  status.behaviour = behaviour();
  status.initial_call = label();
  status.mode = suspended_ ? sys::Mode::suspended : sys::Mode::running;
  status.parent = Pid{0, parent()};
  for (uint64_t each : ancestors()) {
    if (each != 0) status.ancestors.push_back(Pid{0, each});
  }
  status.hibernating = hibernating();
  status.trap_exit = trap_exit();
  status.message_queue_len = queue_length();
  if (debug_ != nullptr) status.log = debug_->log;
  status.state = state_text(kStatusStateBytesMax);
  return status;
}

// ---- The end

void SysProcess::report_end(const ExitReason& reason, Letter* last,
                            const std::exception_ptr& thrown) {
  if (!reason.is_abnormal()) return;
  if (LogSink* sink = system().log()) {
    log(*sink, LogLevel::error, domain(), [&](LogRecord& record) {
      const std::string name = system().names().name_of(id());
      const auto stack = thrown == nullptr ? std::nullopt : throw_stack(thrown);
      std::string client;
      ServerReport report{.server = label(), .name = name, .pid = pid(), .reason = &reason};
      if (last != nullptr) {
        report.last_message = [last](BoundedWriter& out) {
          UserScope user(env());
          format_last(out, *last);
        };
        if (last->kind == LetterKind::call) client = name_or_pid(*this, last->sender);
      }
      report.client = client;
      report.stack = stack ? &*stack : nullptr;
      report.state = [this](BoundedWriter& out) { print_state(out); };
      fill_record(record, report);
    });
  }
  report_crash(*this, reason, thrown);
}

// ---- What is switched on

SysDebug& SysProcess::debug() {
  if (debug_ == nullptr) debug_ = std::make_unique<SysDebug>();
  set(kDebugged, true);
  return *debug_;
}

void SysProcess::settle_debug() {
  if (debug_ == nullptr || !debug_->idle()) return;
  debug_.reset();
  set(kDebugged, false);
}

void SysProcess::attend(Letter& letter) {
  if (letter.kind == LetterKind::system) return;
  set_hibernating(false);
  if (!debugged()) return;
  if (debug_->counting) ++debug_->messages_in;
  note(event_of(letter, letter.sender));
}

void SysProcess::note_out(Letter& answer, uint64_t caller) {
  if (debug_->counting) ++debug_->messages_out;
  note(event_of(answer, caller));
}

void SysProcess::note(const sys::Event& event) {
  if (debug_->log_max > 0) {
    if (debug_->log.size() >= debug_->log_max) debug_->log.erase(debug_->log.begin());
    debug_->log.push_back(event.to_string());
  }
  if (LogSink* sink = system().log(); sink != nullptr && debug_->tracing) {
    log(*sink, LogLevel::notice, "otp.sys", [&](LogRecord& record) {
      record.message = std::string(label()) + ' ' + pid().to_string() + ": " + event.to_string();
      record.add("pid", pid().to_string());
    });
  }
  if (debug_->installed.empty()) return;
  {
    UserScope user(env());
    std::erase_if(debug_->installed, [&](SysDebug::Installed& each) {
      try {
        return !each.function(event);
      } catch (...) {
        return true;
      }
    });
  }
  settle_debug();
}

}  // namespace internal
}  // namespace otp
