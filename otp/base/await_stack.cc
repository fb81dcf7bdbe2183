#include "otp/base/await_stack.h"

namespace otp {

std::string AwaitStack::to_string() const {
  std::string text;
  for (size_t i = 0; i < size_; ++i) {
    const std::source_location& site = sites_[i];
    text += "  #" + std::to_string(i) + ' ' + site.file_name() + ':' + std::to_string(site.line()) +
            ' ' + site.function_name() + '\n';
  }
  if (truncated_) text += "  ...\n";
  return text;
}

}  // namespace otp
