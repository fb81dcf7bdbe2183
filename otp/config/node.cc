#include "otp/config/node.h"

#include "otp/config/diagnostic.h"

namespace otp::config {

bool Node::has_unknown() const {
  if (unknown) return true;
  for (const NodePtr& item : items) {
    if (item->has_unknown()) return true;
  }
  for (const Entry& entry : entries) {
    if (entry.value->has_unknown()) return true;
  }
  return false;
}

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
