#pragma once

#include <string>
#include <utility>

#include "otp/base/shareable.h"

namespace otp {

/// A text that no log line, report or error message may show: a password, a token, a key.
///
/// It prints as `***`; only reveal() gives the text, so that every use can be found with grep.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}

  const std::string& reveal() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  static std::string to_string() { return "***"; }

  /// Takes the same time wherever the texts differ first, so that nobody can guess letter by
  /// letter.
  bool matches(const std::string& other) const noexcept {
    unsigned char difference = text_.size() == other.size() ? 0 : 1;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char theirs = i < other.size() ? other[i] : '\0';
      difference |= static_cast<unsigned char>(text_[i] ^ theirs);
    }
    return difference == 0;
  }

 private:
  std::string text_;
};

template <>
struct Shareable<Secret> : std::true_type {};

}  // namespace otp
