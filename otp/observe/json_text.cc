#include "otp/observe/json_text.h"

#include "otp/base/utf8.h"

namespace otp::observe {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

void append_escaped(std::string* out, char letter) {
  switch (letter) {
    case '"': *out += "\\\""; return;
    case '\\': *out += "\\\\"; return;
    case '\n': *out += "\\n"; return;
    case '\r': *out += "\\r"; return;
    case '\t': *out += "\\t"; return;
    default: break;
  }
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(letter);
  *out += "\\u00";
  *out += kHex[byte >> 4];
  *out += kHex[byte & 15];
}

}  // namespace

void append_json_string(std::string* out, std::string_view text) {
  *out += '"';
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    if (first >= 0x80) {
      const size_t length = utf8_sequence(text);
      out->append(length == 0 ? kReplacementCharacter : text.substr(0, length));
      text.remove_prefix(length == 0 ? 1 : length);
      continue;
    }
    if (first < 0x20 || first == '"' || first == '\\' || first == 0x7f) {
      append_escaped(out, text[0]);
    } else {
      *out += text[0];
    }
    text.remove_prefix(1);
  }
  *out += '"';
}

bool is_json_number(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > begin;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const size_t whole = at;
  if (!digits()) return false;
  if (text[whole] == '0' && at > whole + 1) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!digits()) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return false;
  }
  return at == text.size();
}

void JsonWriter::before_value() {
  if (comma_) *out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  before_value();
  *out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  *out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_json_string(out_, name);
  *out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::number(int64_t value) {
  before_value();
  *out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::number(uint64_t value) {
  before_value();
  *out_ += std::to_string(value);
  return *this;
}

JsonWriter& JsonWriter::raw_number(std::string_view text) {
  before_value();
  *out_ += text;
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  before_value();
  *out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  *out_ += "null";
  return *this;
}

}  // namespace otp::observe
