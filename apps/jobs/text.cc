#include "apps/jobs/text.h"

#include <cstddef>
#include <cstdint>

#include "otp/base/utf8.h"

namespace jobs {

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  otp::append_valid_utf8(&text, bytes);
  return text;
}

void drop_unfinished_letter(std::string& bytes) {
  constexpr size_t kLetterBytesMax = 4;
  for (size_t back = 1; back < kLetterBytesMax && back <= bytes.size(); ++back) {
    const size_t at = bytes.size() - back;
    if ((static_cast<uint8_t>(bytes[at]) & 0xc0) == 0x80) continue;  // not the first of a letter
    if (otp::utf8_sequence(std::string_view(bytes).substr(at)) != 0) return;
    // Would it become a letter with more bytes? The lowest and the highest cover all that can come.
    for (const char more : {'\x80', '\xbf'}) {
      const std::string finished = bytes.substr(at) + std::string(kLetterBytesMax - back, more);
      if (otp::utf8_sequence(finished) > back) return bytes.resize(at);
    }
    return;
  }
}

}  // namespace jobs
