#include "otp/config/node.h"

#include "otp/config/diagnostic.h"

namespace otp::config {

std::string Node::got() const {
  if (kind == Kind::list) return "a list";
  if (kind == Kind::map) return "a mapping";
  if (kind == Kind::nothing) return text.empty() ? "nothing" : text;
  if (hidden) return written.empty() ? "another value" : "the value of " + shown(written);
  if (plain) return shown(text);
  const std::string word = shown(text);
  return word.front() == '"' ? word : '"' + word + '"';
}

}  // namespace otp::config
