#include <utility>

#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/server_process.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime_log.h"

namespace otp::internal {

// ---- Starting

void ServerBase::on_start() {
  if (drops_expired()) set_drop_expired(true);
  set_may_have_urgent_work(false);
  if (!register_own_name() || !register_via()) return;
  construct();
}

bool ServerBase::register_own_name() {
  if (margin_ == nullptr || margin_->name.empty()) return true;
  const std::string& name = margin_->name;
  uint64_t holder = 0;
  switch (system().names().add(name, id(), &holder)) {
    case NameTable::Outcome::registered: return true;
    case NameTable::Outcome::name_taken:
      fail_start(ExitReason::normal(), ExitReason::tagged("already_started", Term(Pid{0, holder})),
                 0);
      return false;
    default:
      fail_start(ExitReason::normal(), ExitReason::tagged("badarg", Term(name)), 0);
      return false;
  }
}

bool ServerBase::register_via() {
  if (margin_ == nullptr || margin_->via == nullptr) return true;
  Pid holder;
  bool asked = false;
  user([&] {
    holder = margin_->via->add_self();
    asked = true;
  });
  if (!asked) return false;
  if (!holder) return true;
  fail_start(ExitReason::normal(), ExitReason::tagged("already_started", Term(holder)), 0);
  return false;
}

void ServerBase::start_done(Step step) {
  if (step.kind == Step::Kind::ignore) {
    return fail_start(ExitReason::normal(), ExitReason::atom("ignore"), kIgnored);
  }
  if (step.kind == Step::Kind::error) {
    return fail_start(ExitReason::normal(), std::move(step.reason), 0);
  }
  if (step.kind == Step::Kind::stop) {
    report_crash(*this, step.reason, nullptr);
    ExitReason answer = step.reason;
    return fail_start(std::move(step.reason), std::move(answer), 0);
  }
  phase_ = Phase::idle;
  margin_.reset();
  acknowledge(make_signal(LetterKind::reply));
  follow(std::move(step));
}

// The starter hears of it when the process is gone and its name is free: in answer_waiting.
void ServerBase::fail_start(ExitReason reason, ExitReason answer, uint8_t flags) {
  margin().start_answer = std::move(answer);
  start_flags_ = flags;
  exit_with(std::move(reason));
}

void ServerBase::acknowledge(Letter* letter) {
  letter->sender = id();
  letter->reference = call_reference_;
  uint64_t caller = std::exchange(call_caller_, 0);
  if (caller == 0) return free_letter(letter);
  system().deliver(caller, letter);
}

// ---- Messages

void ServerBase::on_message(Letter* letter) {
  handling([&] {
    if (attention()) [[unlikely]]
      attend(*letter);
    handle(letter);
  });
}

// A callback that has returned without waiting; one that waits comes to on_coroutine_done.
void ServerBase::callback_done() {
  if (phase_ != Phase::handling || driver().active()) return;
  phase_ = Phase::idle;
  if (held_ != nullptr) consume(std::exchange(held_, nullptr));
}

bool ServerBase::is_expired(int64_t deadline) const {
  return drop_expired() && deadline != TimerWheel::kNever && system().now() > deadline;
}

void ServerBase::handle(Letter* letter) {
  switch (letter->kind) {
    case LetterKind::call:
    case LetterKind::cast:
      if (letter->operation->server != &type_) {
        // An address of another server type was made by hand from a pid.
        begin_call(*letter);
        log_runtime(
            system().log(), LogLevel::error,
            std::string(type_.name) + " " + pid().to_string() +
                " got a message for another type: " + std::string(letter->operation->type->name));
        if (letter->kind == LetterKind::call) {
          Letter* refusal =
              make_signal(LetterKind::reply,
                          ExitReason::tagged("bad_server", Term::atom(std::string(type_.name))));
          refusal->flags |= kFailed;
          send_answer(refusal);
        }
        return consume(letter);
      }
      if (letter->kind == LetterKind::call && is_expired(letter->deadline())) {
        return consume(letter);
      }
      return letter->operation->invoke(*this, *letter);
    case LetterKind::system: return handle_system(letter);
    case LetterKind::reply: return dispatch_response(letter);
    case LetterKind::exit:
    case LetterKind::link_exit:
      if (linked_ && letter->sender == parent()) {
        ExitReason reason = letter->as<ExitReason>();
        consume(letter);
        return terminate_with(std::move(reason));
      }
      return dispatch_info(letter);
    default:
      if (letter->operation != nullptr && letter->operation->server == &type_) {
        return letter->operation->invoke(*this, *letter);
      }
      return dispatch_info(letter);
  }
}

void ServerBase::unhandled_info(Letter* letter) {
  std::string what = letter->kind == LetterKind::message
                         ? std::string(letter->operation->type->name)
                     : letter->kind == LetterKind::down  ? "DOWN"
                     : letter->kind == LetterKind::reply ? "response"
                                                         : "EXIT";
  log_runtime(system().log(), LogLevel::warning,
              std::string(type_.name) + " " + pid().to_string() +
                  " has no handle_info for a message of type " + what);
  consume(letter);
}

void ServerBase::on_idle_timeout() {
  handling([&] { dispatch_timeout(); });
}

void ServerBase::begin_call(Letter& letter) {
  call_caller_ = letter.sender;
  call_reference_ = letter.reference;
  call_deadline_ = letter.flags & kDeadline ? letter.deadline() : TimerWheel::kNever;
}

void ServerBase::send_answer(Letter* letter) {
  letter->sender = id();
  letter->reference = call_reference_;
  uint64_t caller = std::exchange(call_caller_, 0);
  if (debugged()) [[unlikely]]
    note_out(*letter, caller);
  if (caller == 0) return free_letter(letter);
  system().deliver(caller, letter);
}

void ServerBase::answered(uint64_t reference) {
  if (call_caller_ != 0 && call_reference_ == reference) {
    call_caller_ = 0;
  } else {
    unwatch(reference);
  }
}

void ServerBase::keep_waiting() {
  uint64_t caller = std::exchange(call_caller_, 0);
  if (caller != 0) watch(call_reference_, caller, kFailed);
}

// ---- After a callback

void ServerBase::follow(Step step) {
  if (step.kind == Step::Kind::stop) return terminate_with(std::move(step.reason));
  if (step.idle_timeout) {
    wait_for_message(system().deadline_after(*step.idle_timeout));
  }
  if (step.hibernate) {
    set_hibernating(true);
    run_hibernate();
  }
  if (step.next != nullptr) {
    next_ = std::move(step.next);
    set_may_have_urgent_work(true);
  }
}

bool ServerBase::has_urgent_work() const {
  return next_ != nullptr && phase_ != Phase::terminating;
}

void ServerBase::on_urgent_work() {
  set_may_have_urgent_work(false);
  handling([&] { dispatch_continue(next_.release()); });
}

void ServerBase::on_coroutine_done() {
  std::exception_ptr thrown = take_coroutine_exception();
  if (phase_ == Phase::terminating) return terminated(std::move(thrown));
  if (thrown != nullptr) return fault(std::move(thrown));
  callback_done();
  if (deferred_stop_) {
    deferred_stop_ = false;
    return terminate_with(std::move(margin().stop_reason));
  }
  coroutine_done();
}

// ---- The end

void ServerBase::fault(std::exception_ptr thrown) {
  ExitReason reason = reason_of(thrown);
  if (phase_ == Phase::starting) {
    report_crash(*this, reason, thrown);
    ExitReason answer = reason;
    return fail_start(std::move(reason), std::move(answer), 0);
  }
  roll_back();
  margin().fault = std::move(thrown);
  terminate_with(std::move(reason));
}

void ServerBase::terminate_with(ExitReason reason) {
  if (driver().active()) {  // inside the callback's own coroutine: it ends first
    deferred_stop_ = true;
    margin().stop_reason = std::move(reason);
    return;
  }
  phase_ = Phase::terminating;
  next_.reset();
  margin().stop_reason = std::move(reason);
  run_terminate(margin().stop_reason);
}

void ServerBase::terminated(std::exception_ptr thrown) {
  Margin& end = margin();
  if (thrown != nullptr) {
    end.stop_reason = reason_of(thrown);
    end.fault = std::move(thrown);
  }
  report_end(end.stop_reason, held_, end.fault);
  end.fault = nullptr;
  exit_with(std::move(end.stop_reason));
}

void ServerBase::on_exit() noexcept {
  if (held_ != nullptr) consume(std::exchange(held_, nullptr));
  next_.reset();
  destroy_server();
}

void ServerBase::answer_waiting() noexcept {
  if (call_caller_ == 0) return;
  if (phase_ != Phase::starting) {
    Letter* letter = make_signal(LetterKind::reply, exit_reason());
    letter->flags |= kFailed;
    return send_answer(letter);
  }
  const bool failed =
      margin_ != nullptr && (start_flags_ != 0 || !margin_->start_answer.is_normal());
  Letter* letter = make_signal(LetterKind::reply, failed ? margin_->start_answer : exit_reason());
  letter->flags |= kFailed | start_flags_;
  acknowledge(letter);
}

// ---- Calls

bool CallBase::ready() noexcept {
  self_call_ = target_.id == self_process().id();
  return self_call_;
}

void CallBase::suspend() {
  LibraryScope scope(env());
  Process& process = self_process();
  SystemImpl& system = process.system();
  int64_t deadline = system.core_deadline_after(timeout_);
  reference_ = system.new_reference();
  Letter* letter = std::exchange(request_, nullptr);
  letter->sender = process.id();
  letter->reference = reference_;
  letter->set_deadline(deadline);
  process.expect_reply(reference_, target_.id);
  process.begin_wait(Process::Wait::reply, deadline);
  system.deliver(target_.id, letter);
}

Letter* CallBase::finish(ExitReason& error) {
  if (self_call_) {
    error = ExitReason::atom("calling_self");
    return nullptr;
  }
  LibraryScope scope(env());
  Process& process = self_process();
  Letter* reply = process.take_reply();
  process.abandon_wait();
  if (reply == nullptr) {
    // A server that answers later watches us by this reference: it can let go.
    process.send_demonitor(target_.id, reference_);
    error = ExitReason::timeout();
    return nullptr;
  }
  if (reply->sender != target_.id) process.send_demonitor(target_.id, reference_);
  if (reply->flags & kFailed) {
    error = reply->as<ExitReason>();
    process.consume(reply);
    return nullptr;
  }
  return reply;
}

void CallBase::throw_described(ExitReason error, const char* behaviour, std::string_view message) {
  Term timeout =
      timeout_.is_infinite() ? Term::literal("infinity") : Term(timeout_.nanoseconds() / 1'000'000);
  Term description =
      Term::tuple({Term::literal(behaviour), Term::literal("call"),
                   Term::list({Term(target_), Term::atom(std::string(message)), timeout})});
  throw Exit(ExitReason(Term::tuple({error.term(), description})));
}

void deliver_reply(Pid caller, Reference reference, Pid server, Letter* letter) {
  Process& process = self_process();
  letter->sender = process.id();
  letter->reference = reference.id;
  if (server.id == process.id() && process.server_type() != nullptr) {
    static_cast<ServerBase&>(process).answered(reference.id);
  }
  process.system().deliver(caller.id, letter);
}

namespace {

// Accepts the DOWN of one monitor.
struct DownOf {
  Reference reference;
  bool operator()(const Down& down) const { return down.reference == reference; }
};

struct StopRequest {
  SystemRequest request;
  ExitReason reason;
};

// The start's acknowledgement: waits like a call for a reply to `reference`.
class AckAwaiter {
 public:
  AckAwaiter(Pid child, uint64_t reference, int64_t deadline)
      : child_(child), reference_(reference), deadline_(deadline) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    LibraryScope scope(env());
    Process& process = self_process();
    process.expect_reply(reference_, 0);
    process.begin_wait(Process::Wait::reply, deadline_);
  }
  Letter* await_resume() {
    LibraryScope scope(env());
    Process& process = self_process();
    Letter* reply = process.take_reply();
    process.abandon_wait();
    return reply;
  }

 private:
  Pid child_;
  uint64_t reference_;
  int64_t deadline_;
};

// A failed start leaves nothing behind: no monitor, no link, and no message of the process that
// never was.
void forget_failed(Pid child, Reference monitor, bool linked) {
  if (monitor) demonitor(monitor, true);
  if (!linked) return;
  LibraryScope scope(env());
  Process& process = self_process();
  if (!process.drain_now()) return;
  process.unlink(child);
  process.flush_exit(child.id);
}

}  // namespace

Async<Result<Started>> start_server(MakeServer make, void* arguments, StartOptions options,
                                    StartTies ties) {
  const Ancestors older = self_process().ancestors();
  StartAck ack{self_process().id(), make_ref().id, ties.link, {older[0], older[1], older[2]}};
  auto body = make(std::move(options.name), ack, arguments);
  body->limit_mailbox(options.mailbox);
  body->set_drop_expired(options.drop_expired);
  if (options.via) {
    auto* server = dynamic_cast<ServerBase*>(body.get());
    if (server == nullptr) co_return ExitReason::tagged("badarg", Term("via wants a server"));
    server->set_via(options.via->target());
  }
  Spawned spawned = spawn_process(std::move(body), {.link = ties.link, .monitor = ties.monitor});
  Pid child = spawned.pid;
  Letter* letter =
      co_await AckAwaiter(child, ack.reference, env().system->deadline_after(options.timeout));
  if (letter == nullptr) {  // the start took too long: the process must be gone before this returns
    if (ties.link) unlink(child);
    Reference reference = monitor(child);
    otp::exit(child, ExitReason::kill());
    DownOf ours{reference};
    co_await receive<Down>(ours);
    forget_failed(child, spawned.monitor, ties.link);
    co_return ExitReason::timeout();
  }
  uint8_t flags = letter->flags;
  ExitReason reason = flags & kFailed ? letter->as<ExitReason>() : ExitReason();
  self_process().consume(letter);
  if (!(flags & kFailed)) co_return Started{child, spawned.monitor};
  forget_failed(child, spawned.monitor, ties.link);
  if (flags & kIgnored) co_return Ignored();
  co_return reason;
}

}  // namespace otp::internal

namespace otp {

using namespace internal;

std::optional<Duration> remaining() {
  auto* server = dynamic_cast<ServerBase*>(&self_process());
  if (server == nullptr || server->call_deadline() == TimerWheel::kNever) return std::nullopt;
  int64_t left = server->call_deadline() - server->system().now();
  return Duration(left < 0 ? 0 : left);
}

Async<void> stop(Pid server, ExitReason reason, Timeout timeout) {
  if (server == self()) throw Exit(ExitReason::atom("calling_self"));
  Reference reference = monitor(server);
  {
    LibraryScope scope(env());
    StopRequest request{{[](SysProcess& process, Letter& letter) {
                          ExitReason why = letter.as<StopRequest>().reason;
                          process.consume(&letter);
                          process.stop_with(std::move(why));
                        }},
                        reason};
    Letter* letter = make_letter<StopRequest>(LetterKind::system, plain_operation<StopRequest>,
                                              std::move(request));
    deliver_message(server, letter);
  }
  DownOf ours{reference};
  auto down = co_await receive<Down>(ours, after(timeout));
  if (!down) {
    demonitor(reference, true);
    throw Exit(ExitReason::timeout());
  }
  if (!(down->reason == reason)) throw Exit(down->reason);
}

}  // namespace otp
