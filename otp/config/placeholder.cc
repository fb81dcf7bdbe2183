#include "otp/config/placeholder.h"

#include <utility>

#include "otp/config/diagnostic.h"
#include "otp/config/source.h"

namespace otp::config {
namespace {

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

/// The brace that closes the placeholder whose inside starts at `begin`, or npos.
std::size_t closing_brace(std::string_view text, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && depth-- == 0) return i;
  }
  return std::string_view::npos;
}

class Expander {
 public:
  Expander(std::string_view text, const Environment* environment)
      : text_(text), environment_(environment) {}

  Expansion run() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 3) == "$${") {
        result_.text += "${";
        at_ += 3;
        ++nth_;
      } else if (text_.substr(at_, 2) == "${") {
        placeholder();
      } else {
        result_.text += text_[at_++];
      }
    }
    return std::move(result_);
  }

 private:
  void placeholder() {
    result_.replaced = true;
    const std::size_t begin = at_ + 2;
    const std::size_t end = closing_brace(text_, begin);
    if (end == std::string_view::npos) {
      mistake("} after ${", "the end of the text");
      at_ = text_.size();
      return;
    }
    inside(text_.substr(begin, end - begin));
    count_inner(begin, end);
    at_ = end + 1;
    ++nth_;
  }

  void inside(std::string_view inner) {
    const std::size_t colon = inner.find(':');
    const std::string_view name = inner.substr(0, colon);
    if (!is_name(name)) {
      mistake("the name of an environment variable after ${",
              name.empty() ? "nothing" : shown(name));
      return;
    }
    if (colon == std::string_view::npos) {
      use(name, nullptr);
      return;
    }
    const std::string_view value = inner.substr(colon + 1);
    if (value.find("${") != std::string_view::npos) {
      mistake("a default without a placeholder in it", shown(value));
      return;
    }
    use(name, &value);
  }

  void use(std::string_view name, const std::string_view* value) {
    const std::string variable = "the environment variable " + std::string(name);
    if (environment_ == nullptr) {
      if (value == nullptr) result_.unresolved = true;
      if (value != nullptr) result_.text += *value;
      return;
    }
    const auto found = environment_->find(name);
    if (found != environment_->end()) {
      if (!is_utf8(found->second)) {
        mistake("UTF-8 in " + variable, "other bytes");
        return;
      }
      result_.text += found->second;
    } else if (value != nullptr) {
      result_.text += *value;
    } else {
      mistake(variable + " or a default, as in ${" + std::string(name) + ":default}", "neither");
    }
  }

  /// Counts every `${` inside, so that the next mistake points to its own.
  void count_inner(std::size_t begin, std::size_t end) {
    for (std::size_t i = text_.find("${", begin); i < end; i = text_.find("${", i + 2)) ++nth_;
  }

  void mistake(std::string expected, std::string got) {
    result_.mistakes.push_back({nth_, std::move(expected), std::move(got)});
  }

  std::string_view text_;
  const Environment* environment_;
  std::size_t at_ = 0;
  std::size_t nth_ = 0;
  Expansion result_;
};

}  // namespace

Expansion expand_placeholders(std::string_view text, const Environment* environment) {
  return Expander(text, environment).run();
}

}  // namespace otp::config
