#include "apps/jobs/text.h"

#include <cstdint>

namespace jobs {
namespace {

/// How a sequence begins at some place.
struct Letter {
  size_t bytes = 1;    ///< of the letter, or of its longest good beginning (at least 1)
  bool whole = false;  ///< a letter
  bool ended = false;  ///< no letter because the text ends within it
};

Letter letter_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  if (first < 0x80) return {.bytes = 1, .whole = true, .ended = false};
  size_t size = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xbf;  // of the second byte: excludes overlong forms, surrogates, beyond U+10FFFF
  if (first >= 0xc2 && first <= 0xdf) size = 2;
  if (first >= 0xe0 && first <= 0xef) size = 3;
  if (first >= 0xf0 && first <= 0xf4) size = 4;
  if (size == 0) return {};
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  for (size_t i = 1; i < size; ++i) {
    if (at + i == text.size()) return {.bytes = i, .whole = false, .ended = true};
    if (byte(at + i) < low || byte(at + i) > high)
      return {.bytes = i, .whole = false, .ended = false};
    low = 0x80;
    high = 0xbf;
  }
  return {.bytes = size, .whole = true, .ended = false};
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    const Letter letter = letter_at(bytes, at);
    if (letter.whole) {
      text.append(bytes, at, letter.bytes);
    } else {
      text += "\xef\xbf\xbd";
    }
    at += letter.bytes;
  }
  return text;
}

bool is_valid_utf8(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Letter letter = letter_at(bytes, at);
    if (!letter.whole) return false;
    at += letter.bytes;
  }
  return true;
}

void drop_unfinished_letter(std::string& bytes) {
  constexpr size_t kLetterBytesMax = 4;
  for (size_t back = 1; back < kLetterBytesMax && back <= bytes.size(); ++back) {
    const size_t at = bytes.size() - back;
    if ((static_cast<uint8_t>(bytes[at]) & 0xc0) == 0x80)
      continue;  // not the first byte of a letter
    if (letter_at(bytes, at).ended) bytes.resize(at);
    return;
  }
}

}  // namespace jobs
