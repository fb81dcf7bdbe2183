#include "otp/behaviour/request.h"

namespace otp::internal {

Reference post_request(Pid server, Letter* request) {
  Process& process = self_process();
  const uint64_t reference = process.new_reference();
  process.add_alias(reference, Process::kForResponse);
  request->sender = process.id();
  request->reference = reference;
  process.system().deliver(server.id, request);
  return Reference{0, reference};
}

void abandon_request(Pid server, Reference reference) {
  LibraryScope scope(env());
  Process& process = self_process();
  if (!process.remove_alias(reference.id)) {  // it has come just now
    Letter* late = process.take_matching([reference](const Letter& letter) {
      return letter.kind == LetterKind::reply && letter.reference == reference.id;
    });
    if (late != nullptr) process.consume(late);
  }
  // A server that answers later watches us by this reference: it can let go.
  process.send_demonitor(server.id, reference.id);
}

ExitReason failed_request(const Letter& response, Pid server) {
  return ExitReason(Term::tuple({response.as<ExitReason>().term(), Term(server)}));
}

bool ResponseReceive::accepts(Letter& letter) {
  if (letter.kind != LetterKind::reply) return false;
  for (size_t i = 0; i < count_; ++i) {
    if (first_[i].id == letter.reference) return true;
  }
  return false;
}

}  // namespace otp::internal
