#include "otp/config/source.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace otp::config {
namespace {

std::string hex_byte(unsigned char byte) {
  constexpr char kHex[] = "0123456789ABCDEF";
  return std::string("0x") + kHex[byte >> 4] + kHex[byte & 15];
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

/// The encoding that a byte order mark other than UTF-8's, or NULs between letters, give away.
std::string_view other_encoding(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (starts_with(bytes, "\xff\xfe\0\0"sv) || starts_with(bytes, "\0\0\xfe\xff"sv)) return "UTF-32";
  if (starts_with(bytes, "\xff\xfe"sv) || starts_with(bytes, "\xfe\xff"sv)) return "UTF-16";
  if (bytes.size() >= 4 && bytes[0] == '\0' && bytes[1] != '\0' && bytes[2] == '\0')
    return "UTF-16";
  if (bytes.size() >= 4 && bytes[0] != '\0' && bytes[1] == '\0' && bytes[3] == '\0')
    return "UTF-16";
  return {};
}

/// A control character that YAML does not allow in a file: one byte, or C1 in two.
std::string forbidden_control(std::string_view bytes, std::size_t at, std::size_t length) {
  const auto byte = static_cast<unsigned char>(bytes[at]);
  if (length == 1 && ((byte < 0x20 && byte != '\t') || byte == 0x7f)) {
    return byte == 0 ? "a NUL" : "the control character " + hex_byte(byte);
  }
  if (length == 2 && byte == 0xc2) {
    const auto second = static_cast<unsigned char>(bytes[at + 1]);
    if (second < 0xa0 && second != 0x85) return "the control character " + hex_byte(second);
  }
  return {};
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (first == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
    if (first == 0xed && byte(1) >= 0xa0) return 0;  // a surrogate
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (first == 0xf0 && byte(1) < 0x90) return 0;
    if (first == 0xf4 && byte(1) >= 0x90) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

Source::Source(std::string_view bytes, std::shared_ptr<const std::string> file)
    : file_(std::move(file)) {
  if (bytes.size() > kBytesMax) {
    fail("a file of at most 16MiB", std::to_string(bytes.size()) + " bytes");
    return;
  }
  if (const std::string_view encoding = other_encoding(bytes); !encoding.empty()) {
    fail("UTF-8", encoding);
    return;
  }
  if (starts_with(bytes, "\xef\xbb\xbf")) bytes.remove_prefix(3);
  normalise(bytes);
}

void Source::normalise(std::string_view bytes) {
  text_.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] == '\n' || bytes[at] == '\r') {
      at += starts_with(bytes.substr(at), "\r\n") ? 2 : 1;
      text_ += '\n';
      line_starts_.push_back(text_.size());
      continue;
    }
    const std::size_t length = utf8_length(bytes, at);
    if (length == 0) {
      fail("UTF-8", "the byte " + hex_byte(static_cast<unsigned char>(bytes[at])));
      return;
    }
    if (const std::string control = forbidden_control(bytes, at, length); !control.empty()) {
      fail("text", control);
      return;
    }
    text_.append(bytes, at, length);
    at += length;
  }
}

void Source::fail(std::string_view expected, std::string_view got) {
  Diagnostics one;
  one.expected(position(text_.size()), expected, got);
  mistake_ = one.sorted().front();
}

std::size_t Source::offset(int line, int column) const {
  if (line < 0 || static_cast<std::size_t>(line) >= line_starts_.size()) return text_.size();
  const std::size_t start = line_starts_[static_cast<std::size_t>(line)];
  return std::min(text_.size(), start + static_cast<std::size_t>(std::max(column, 0)));
}

Position Source::position(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::size_t start = *(after - 1);
  const bool goes_on = counted_start_ == start && counted_offset_ <= offset;
  int column = goes_on ? counted_column_ : 1;
  for (std::size_t i = goes_on ? counted_offset_ : start; i < offset && i < text_.size(); ++i) {
    if ((static_cast<unsigned char>(text_[i]) & 0xc0) != 0x80) ++column;
  }
  counted_start_ = start;
  counted_offset_ = offset;
  counted_column_ = column;
  return {static_cast<int>(after - line_starts_.begin()), column, nullptr, file_};
}

std::string_view Source::line_at(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const std::string_view rest = std::string_view(text_).substr(*(after - 1));
  return rest.substr(0, rest.find('\n'));
}

}  // namespace otp::config
