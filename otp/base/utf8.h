#pragma once

/// UTF-8 of uncertain origin: finding what is not valid, and cutting without halving a letter.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace otp {

/// U+FFFD, which stands where bytes were no UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// The length of the valid UTF-8 sequence that `text` begins with: 1 to 4, or 0 when there is none
/// (a stray or missing continuation byte, an overlong form, a surrogate, beyond U+10FFFF).
constexpr size_t utf8_sequence(std::string_view text) {
  if (text.empty()) return 0;
  const auto at = [&](size_t index) {
    return index < text.size() ? static_cast<uint8_t>(text[index]) : uint8_t{0};
  };
  const auto continues = [&](size_t index) { return (at(index) & 0xc0) == 0x80; };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return continues(1) ? 2 : 0;
  if (first < 0xf0) {
    if (first == 0xe0 && at(1) < 0xa0) return 0;  // overlong
    if (first == 0xed && at(1) > 0x9f) return 0;  // surrogates
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (first > 0xf4 || (first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f)) return 0;
  return continues(1) && continues(2) && continues(3) ? 4 : 0;
}

constexpr bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// The largest length up to `bytes_max` at which `text` can be cut without halving a letter.
constexpr size_t utf8_cut(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text.size();
  size_t cut = bytes_max;
  for (int back = 0; back < 3 && cut > 0; ++back) {
    if ((static_cast<uint8_t>(text[cut]) & 0xc0) != 0x80) return cut;
    --cut;
  }
  return (static_cast<uint8_t>(text[cut]) & 0xc0) != 0x80 ? cut : bytes_max;  // no UTF-8 anyway
}

/// Appends `text` with kReplacementCharacter in the place of each byte that is not valid.
inline void append_valid_utf8(std::string* out, std::string_view text) {
  while (!text.empty()) {
    size_t good = 0;
    size_t length = 0;
    while (good < text.size() && (length = utf8_sequence(text.substr(good))) != 0) good += length;
    out->append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return;
    out->append(kReplacementCharacter);
    text.remove_prefix(1);
  }
}

}  // namespace otp
