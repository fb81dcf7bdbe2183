#include "otp/runtime/letter.h"

#include "otp/base/pid.h"

namespace otp::internal {

namespace {

std::string_view kind_text(LetterKind kind) {
  switch (kind) {
    case LetterKind::call: return "call ";
    case LetterKind::cast: return "cast ";
    case LetterKind::system: return "system ";
    case LetterKind::reply: return "reply ";
    case LetterKind::down: return "DOWN ";
    case LetterKind::exit:
    case LetterKind::link_exit: return "EXIT ";
    default: return "";
  }
}

}  // namespace

void format_letter(BoundedWriter& out, const Letter& letter) {
  out.write(kind_text(letter.kind));
  if (!letter.has_payload()) {
    out.write("ok");
  } else if (letter.holds_reason()) {
    out.term(letter.as<ExitReason>().term());
  } else {
    letter.operation->type->format(out, letter.payload());
  }
  if (letter.sender != 0) out.write(" from ").write(Pid{0, letter.sender}.to_string());
}

}  // namespace otp::internal
