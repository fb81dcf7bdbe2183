#include "apps/jobs/text.h"

#include <catch2/catch.hpp>
#include <random>

#include "otp/base/utf8.h"

namespace jobs {

TEST_CASE("R-033 letters stay, everything else becomes a replacement", "[jobs][text]") {
  const std::string bad = "\xef\xbf\xbd";
  CHECK(valid_utf8("plain \xc3\xa9 \xe4\xbd\x9c \xf0\x9f\x98\x80") ==
        "plain \xc3\xa9 \xe4\xbd\x9c \xf0\x9f\x98\x80");
  CHECK(valid_utf8(std::string_view("\0", 1)) == std::string(1, '\0'));
  CHECK(valid_utf8(std::string_view("\xff\x00\xc3", 3)) == bad + std::string(1, '\0') + bad);
  CHECK(valid_utf8("\xc0\x80") == bad + bad);                      // overlong
  CHECK(valid_utf8("\xed\xa0\x80") == bad + bad + bad);            // a surrogate
  CHECK(valid_utf8("\xf4\x90\x80\x80") == bad + bad + bad + bad);  // beyond U+10FFFF
  CHECK(valid_utf8("\xe4\xbd") == bad + bad);                      // cut short
  CHECK(valid_utf8("\xe4\xbdx") == bad + bad + "x");
  CHECK(valid_utf8("\xf4\x8f\xbf\xbf") == "\xf4\x8f\xbf\xbf");
  CHECK(valid_utf8("\x80") == bad);
}

TEST_CASE("random bytes always become valid text, and valid text is left alone", "[jobs][text]") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t i = random() % 12; i > 0; --i)
      bytes += static_cast<char>(random() % 2 ? random() : 0xc3);
    const std::string text = valid_utf8(bytes);
    CHECK(otp::is_valid_utf8(text));
    CHECK(valid_utf8(text) == text);
    CHECK((text == bytes) == otp::is_valid_utf8(bytes));
  }
}

TEST_CASE("only an unfinished letter at the end is dropped", "[jobs][text]") {
  const auto dropped = [](std::string bytes) {
    drop_unfinished_letter(bytes);
    return bytes;
  };
  CHECK(dropped("").empty());
  CHECK(dropped("abc") == "abc");
  CHECK(dropped("a\xc3\xa9") == "a\xc3\xa9");
  CHECK(dropped("a\xc3") == "a");
  CHECK(dropped("a\xf0\x9f\x98") == "a");
  CHECK(dropped("a\xf0\x9f\x98\x80") == "a\xf0\x9f\x98\x80");
  CHECK(dropped("\xe4\xbd").empty());
  CHECK(dropped("a\xff") == "a\xff");
  CHECK(dropped("a\x80\x80\x80\x80") == "a\x80\x80\x80\x80");
}

}  // namespace jobs
