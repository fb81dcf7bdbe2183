#pragma once

#include <cstdint>
#include <utility>

#include "otp/io/child_program.h"
#include "otp/runtime/runtime.h"

namespace otp::io::internal {

/// What the owner of a program is told: one of its pipes is ready, or it has ended.
struct ChildNews {
  enum class What : uint8_t { input, output, error, ended };
  uint64_t id = 0;
  What what = What::ended;
  ChildExit exit = {};
};

/// A process as completion handlers know it.
struct ProcessAddress {
  otp::internal::SystemImpl* system = nullptr;
  uint64_t id = 0;
};

/// Sends a plain message from a completion handler.
template <class M>
void send_from_anywhere(ProcessAddress to, M message) {
  using namespace otp::internal;
  Letter* letter = make_letter<M>(LetterKind::message, plain_operation<M>, std::move(message));
  if (current_env != nullptr && current_env->system == to.system) {
    LibraryScope scope(*current_env);
    to.system->deliver(to.id, letter);
  } else {
    OutsideScope outside(*to.system);
    to.system->deliver(to.id, letter);
  }
}

}  // namespace otp::io::internal
