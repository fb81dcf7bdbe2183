#include "otp/task/task_process.h"

#include "otp/runtime/fault.h"

namespace otp::internal {

TaskProcess::~TaskProcess() {
  if (result_ != nullptr) free_letter(result_);
}

namespace {
constexpr int kSpawnCost = 4;
struct Go {};
}  // namespace

void TaskProcess::on_message(Letter* letter) {
  const bool go = is_message<Go>(*letter);
  consume(letter);
  if (go && std::exchange(held_, false)) run_task();
}

void release_task(Pid task) {
  LibraryScope scope(env());
  deliver_message(task, make_letter<Go>(LetterKind::message, plain_operation<Go>, Go()));
}

void TaskProcess::finish(Letter* result) {
  if (exiting()) {  // a signal that was looked at meanwhile came first
    if (result != nullptr) free_letter(result);
    return;
  }
  result_ = result;
  if (result != nullptr) forget_link(owner_);  // the result ends the owner's side
  exit_with(ExitReason::normal());
}

void TaskProcess::fail(std::exception_ptr thrown) {
  ExitReason reason = reason_of(thrown);
  if (!exiting()) report_crash(*this, reason, thrown);
  exit_with(std::move(reason));
}

void TaskProcess::answer_waiting() noexcept {
  if (reference_ == 0) return;
  Letter* letter = result_ != nullptr ? std::exchange(result_, nullptr)
                                      : make_signal(LetterKind::down, exit_reason());
  letter->sender = id();
  letter->reference = reference_;
  system().deliver(owner_, letter);
}

Spawned spawn_task(std::unique_ptr<TaskProcess> body, const TaskTies& ties) {
  LibraryScope scope(env());
  Process& owner = self_process();
  SystemImpl& system = owner.system();
  uint64_t reference = system.new_reference();
  body->set_owner(owner.id(), reference);
  uint64_t id = system.spawn(std::move(body), Birth{.parent = owner.id(), .link = ties.link});
  if (id == 0) throw Exit(ExitReason::atom("system_limit"));
  owner.charge(kSpawnCost);
  owner.adopt(id,
              {.linked = ties.link, .quiet = ties.quiet, .monitor = reference, .sink = ties.sink});
  return {Pid{0, id}, Reference{0, reference}};
}

}  // namespace otp::internal
