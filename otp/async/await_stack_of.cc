#include "otp/async/async.h"
#include "otp/base/throw_stack.h"

namespace otp::internal {

AwaitStack await_stack_of(const PromiseBase* innermost) {
  AwaitStack stack;
  for (const PromiseBase* frame = innermost; frame != nullptr; frame = frame->parent) {
    if (frame->await_site.line() != 0) stack.push(frame->await_site);
    if (stack.truncated()) break;
  }
  return stack;
}

void note_await_stack(const PromiseBase& innermost) noexcept {
  if (has_await_stack(innermost.exception)) return;  // it comes from a frame further in
  set_await_stack(innermost.exception, await_stack_of(&innermost));
}

}  // namespace otp::internal
