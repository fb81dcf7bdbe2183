#include <algorithm>
#include <string>
#include <utility>

#include "otp/behaviour/statem_process.h"

namespace otp {

Duration monotonic_time() {
  using namespace internal;
  LibraryScope scope(env());
  return Duration(env().system->now());
}

namespace internal {

namespace {
constexpr int kEventCost = 4;  // as much of a slice as a message

// The name of a generic timeout: the first member of its event (NamedTimeout) or the whole payload
// of a cancel.
const Term& name_of(Letter& letter) { return letter.as<TimeoutName>().term(); }
}  // namespace

// ---- Events

bool StatemBase::has_urgent_work() const {
  if (terminating() || !initialised()) return false;
  return !events_.empty() || has_due();
}

void StatemBase::on_urgent_work() {
  charge(kEventCost);
  handling([&] {
    Letter* event = events_.pop_front();
    if (event == nullptr) event = take_due().release();
    note_urgent_work();
    run_event(event);
  });
}

void StatemBase::drop_events() noexcept {
  events_.clear();
  postponed_.clear();
  for (RunningTimeout& each : timeouts_) disarm(each);
  timeouts_.clear();
  due_now_ = 0;
}

void StatemBase::throw_function_clause(Term state, const char* kind,
                                       std::string_view content) const {
  Term call = Term::tuple(
      {Term::atom(std::string(type().name)), Term::literal("handle_event"),
       Term::list({std::move(state), Term::literal(kind), Term::atom(std::string(content))})});
  throw Exit(ExitReason::tagged("function_clause", Term::list({std::move(call)})));
}

void StatemBase::fail(const char* what, Term value) {
  user([&] { throw Exit(ExitReason::tagged(what, std::move(value))); });
}

// ---- Transitions

// As in OTP: replies go out while the actions are read; then timeouts that this transition ends;
// then the queue: what is inserted, before what was postponed, before what was there; then new
// timeouts.
bool StatemBase::take_actions(ActionList& actions, Change change, const Operation* event) {
  LetterQueue inserted;
  LetterQueue timeouts;
  while (Letter* letter = actions.letters.pop_front()) {
    switch (ActionList::kind_of(*letter)) {
      case ActionKind::reply:
        if (!send_reply(letter, "bad_action_from_state_function")) return false;
        break;
      case ActionKind::postpone:
        postponed_.push_back(letter);
        if (letter->operation == event) break;
        fail("bad_action_from_state_function",
             Term::tuple({Term::literal("postpone"),
                          Term::atom(std::string(letter->operation->type->name))}));
        return false;
      case ActionKind::next_event: inserted.push_back(letter); break;
      default: timeouts.push_back(letter); break;
    }
  }
  if (change != Change::none) cancel(ActionKind::event_timeout, Term());
  if (change == Change::changed) {
    cancel(ActionKind::state_timeout, Term());
    events_.prepend(postponed_);
  }
  events_.prepend(inserted);
  while (Letter* letter = timeouts.pop_front()) take_timeout(letter);
  note_urgent_work();
  return true;
}

bool StatemBase::send_reply(Letter* letter, const char* what_is_wrong) {
  const uint64_t caller = letter->sender;
  if (caller == 0) {
    free_letter(letter);
    fail(what_is_wrong, Term::tuple({Term::literal("reply"), Term::literal("nobody")}));
    return false;
  }
  answered(letter->reference);
  letter->sender = id();
  if (debugged()) [[unlikely]]
    note_out(*letter, caller);
  system().deliver(caller, letter);
  return true;
}

void StatemBase::stop_machine(ActionList& actions, ExitReason reason) {
  while (Letter* letter = actions.letters.pop_front()) {
    if (!send_reply(letter, "bad_reply_action_from_state_function")) return;
  }
  Step step;
  step.kind = Step::Kind::stop;
  step.reason = std::move(reason);
  follow(std::move(step));
}

// ---- Timeouts

void StatemBase::take_timeout(Letter* letter) {
  const ActionKind kind = ActionList::kind_of(*letter);
  const uint32_t flags = ActionList::flags_of(*letter);
  Term name = kind == ActionKind::named_timeout ? name_of(*letter) : Term();
  OwnedLetter event(letter);
  if (flags & kActionCancel) return cancel(kind, name);
  if (flags & kActionUpdate) {
    if (RunningTimeout* running = find(kind, name)) {
      running->event = std::move(event);
      return;
    }
    letter->sender = 0;  // none runs: it comes at once
  }
  cancel(kind, name);
  const int64_t time = static_cast<int64_t>(letter->sender);
  timeouts_.push_back({kind, std::move(name), 0, 0, 0, std::move(event)});
  if (flags & kActionAbsolute) return arm(timeouts_.back(), time);
  if (time > 0) return arm(timeouts_.back(), system().deadline_after(Duration(time)));
  ++due_now_;
}

void StatemBase::arm(RunningTimeout& timeout, int64_t deadline) {
  SystemRequest request{[](SysProcess& process, Letter& letter) {
    static_cast<StatemBase&>(process).fired(&letter);
  }};
  Letter* letter =
      make_letter<SystemRequest>(LetterKind::system, plain_operation<SystemRequest>, request);
  timeout.reference = letter->reference = new_reference();
  timeout.timer = system().arm_timer(deadline, id(), letter, &timeout.core);
}

StatemBase::RunningTimeout* StatemBase::find(ActionKind kind, const Term& name) {
  for (RunningTimeout& each : timeouts_) {
    if (each.kind == kind && each.name == name) return &each;
  }
  return nullptr;
}

void StatemBase::disarm(RunningTimeout& timeout) noexcept {
  if (timeout.reference == 0) {
    --due_now_;
  } else {
    system().cancel_timer(timeout.core, timeout.timer);
  }
}

void StatemBase::cancel(ActionKind kind, const Term& name) {
  if (timeouts_.empty()) return;
  RunningTimeout* running = find(kind, name);
  if (running == nullptr) return;
  disarm(*running);
  timeouts_.erase(timeouts_.begin() + (running - timeouts_.data()));
}

OwnedLetter StatemBase::take_due() {
  auto due = std::find_if(timeouts_.begin(), timeouts_.end(),
                          [](const RunningTimeout& each) { return each.reference == 0; });
  OwnedLetter event = std::move(due->event);
  timeouts_.erase(due);
  --due_now_;
  return event;
}

void StatemBase::fired(Letter* letter) {
  const uint64_t reference = letter->reference;
  consume(letter);
  auto running =
      std::find_if(timeouts_.begin(), timeouts_.end(),
                   [reference](const RunningTimeout& each) { return each.reference == reference; });
  if (running == timeouts_.end()) return;  // (M2)
  if (suspended()) {                       // it comes when the machine goes on
    running->reference = 0;
    ++due_now_;
    return note_urgent_work();
  }
  OwnedLetter event = std::move(running->event);
  timeouts_.erase(running);
  run_event(event.release());
}

}  // namespace internal
}  // namespace otp
