#include "otp/behaviour/proc_lib.h"

namespace otp {

namespace internal {

namespace {
AckedProcess* acked_self() { return dynamic_cast<AckedProcess*>(&self_process()); }
}  // namespace

void AckedProcess::on_start() {
  if (!name_.empty()) {
    uint64_t holder = 0;
    auto outcome = system().names().add(name_, id(), &holder);
    if (outcome == NameTable::Outcome::name_taken) {
      fail_start(ExitReason::tagged("already_started", Term(Pid{0, holder})));
      return exit_with(ExitReason::normal());
    }
    if (outcome != NameTable::Outcome::registered) {
      fail_start(ExitReason::tagged("badarg", Term(name_)));
      return exit_with(ExitReason::normal());
    }
  }
  if (at_once_) acknowledge(make_signal(LetterKind::reply));
  PlainProcess::on_start();
}

void AckedProcess::acknowledge(Letter* letter) {
  letter->sender = id();
  letter->reference = ack_.reference;
  uint64_t caller = std::exchange(ack_.caller, 0);
  if (caller == 0) return free_letter(letter);
  system().deliver(caller, letter);
}

// The starter hears of it when the process is gone and its name is free: in answer_waiting.
void AckedProcess::fail_start(ExitReason answer) {
  answer_ = std::move(answer);
  failed_ = true;
}

void AckedProcess::answer_waiting() noexcept {
  if (ack_.caller == 0) return;
  Letter* letter = make_signal(LetterKind::reply, failed_ ? answer_ : exit_reason());
  letter->flags |= kFailed;
  acknowledge(letter);
}

}  // namespace internal

void InitAck::ready() const {
  using namespace internal;
  LibraryScope scope(env());
  if (AckedProcess* process = acked_self()) process->acknowledge(make_signal(LetterKind::reply));
}

void InitAck::fail(ExitReason reason) const {
  using namespace internal;
  if (AckedProcess* process = acked_self()) process->fail_start(std::move(reason));
  throw Exit(ExitReason::normal());
}

}  // namespace otp
