#include "otp/base/utf8.h"

#include <catch2/catch.hpp>

namespace {

std::string valid(std::string_view text) {
  std::string out;
  otp::append_valid_utf8(&out, text);
  return out;
}

}  // namespace

TEST_CASE("R-033 bytes that are no UTF-8 are replaced one by one", "[utf8]") {
  CHECK(valid("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(valid(std::string_view("\xff\x00\xc3", 3)) == std::string("\xef\xbf\xbd\0\xef\xbf\xbd", 7));
  const std::string_view bad[] = {
      "\x80", "\xc0\x80",         "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
      "\xf5", "\xf4\x90\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xfe"};
  for (std::string_view text : bad) {
    CHECK_FALSE(otp::is_valid_utf8(text));
    CHECK(otp::is_valid_utf8(valid(text)));
    CHECK(valid("a" + std::string(text) + "b").front() == 'a');
    CHECK(valid("a" + std::string(text) + "b").back() == 'b');
  }
}

TEST_CASE("R-033 a cut never halves a letter", "[utf8]") {
  const std::string text = "x\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  for (size_t bytes = 0; bytes <= text.size() + 1; ++bytes) {
    const size_t cut = otp::utf8_cut(text, bytes);
    CHECK(cut <= bytes);
    CHECK(cut + 4 > std::min(bytes, text.size()));
    CHECK(otp::is_valid_utf8(text.substr(0, cut)));
  }
  CHECK(otp::utf8_cut("\x80\x80\x80\x80\x80\x80", 5) == 5);
}
