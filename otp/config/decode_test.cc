#include "otp/config/decode.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace otp::config;
using namespace std::chrono_literals;

namespace decode_test {

enum class Level { debug, info, warning };

struct Endpoint {
  std::string host;
  uint16_t port = 0;
};

struct Item {
  otp::Required<std::string> name;
  int32_t weight = 1;
};

struct Tree {
  std::string name;
  std::vector<Tree> branches;
};

template <class T>
struct One {
  T value{};
};

struct Waiting {
  std::chrono::milliseconds period{1000};
  otp::Timeout timeout = 5s;
  otp::Shutdown shutdown = 5s;
  std::chrono::duration<int32_t> seconds{1};
  std::chrono::duration<double> exact{0};
};

struct All {
  bool flag = false;
  int64_t number = 0;
  double factor = 1;
  std::string text = "default";
  Level level = Level::info;
  otp::Bytes size;
  std::optional<int> maybe = 3;
  std::vector<int> numbers = {9, 9};
  std::map<std::string, Item> items;
  Endpoint endpoint;
  otp::Secret secret;
};

struct Range {
  int32_t low = 0;
  int32_t high = 10;

  std::optional<Problem> problem() const {
    if (low > high) return Problem{"low", "a number not above high"};
    return std::nullopt;
  }
};

}  // namespace decode_test

template <>
struct otp::ConfigText<decode_test::Endpoint> {
  static constexpr std::string_view expected = "an address such as 127.0.0.1:8080";
  static std::optional<decode_test::Endpoint> parse(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto port = otp::config::read_whole_number(text.substr(colon + 1));
    if (port.missed != otp::config::Missed::no || port.value.magnitude > 65535) return std::nullopt;
    return decode_test::Endpoint{std::string(text.substr(0, colon)),
                                 static_cast<uint16_t>(port.value.magnitude)};
  }
};

using namespace decode_test;

namespace {

template <class T>
std::string mistakes(std::string_view yaml, const Environment& environment = {}) {
  std::string text;
  for (const Diagnostic& diagnostic : decode_text<T>(yaml, environment).diagnostics) {
    text += (text.empty() ? "" : "\n") + diagnostic.to_string("f");
  }
  return text;
}

/// What `value: TEXT` gives for a T: the value, or `!` and the mistake without its position.
template <class T>
std::string one(const std::string& text) {
  const auto decoded = decode_text<One<T>>("value: " + text + "\n");
  if (!decoded.value) return "!" + decoded.diagnostics.at(0).text;
  if constexpr (std::is_same_v<T, std::string>) {
    return decoded.value->value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return decoded.value->value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, char>) {
    return std::string(1, decoded.value->value);
  } else if constexpr (std::is_same_v<T, std::optional<int>>) {
    return decoded.value->value ? std::to_string(*decoded.value->value) : "none";
  } else {
    return std::to_string(decoded.value->value);
  }
}

}  // namespace

TEST_CASE("a struct is filled by its fields' names and keeps its other defaults",
          "[config][decode]") {
  const auto decoded = decode_text<All>(
      "flag: true\nnumber: -7\nfactor: 2.5\nlevel: warning\nsize: 64KiB\nnumbers: [1, 2, 3]\n"
      "items:\n  a: {name: x}\n  b: {name: y, weight: 5}\nendpoint: 127.0.0.1:80\nsecret: 123\n");
  REQUIRE(decoded.value);
  const All& all = *decoded.value;
  CHECK(all.flag);
  CHECK(all.number == -7);
  CHECK(all.factor == 2.5);
  CHECK(all.text == "default");
  CHECK(all.level == Level::warning);
  CHECK(all.size == otp::kibibytes(64));
  CHECK(all.maybe == 3);
  CHECK(all.numbers == std::vector<int>{1, 2, 3});
  CHECK(all.items.at("b").name.get() == "y");
  CHECK(all.items.at("b").weight == 5);
  CHECK(all.items.at("a").weight == 1);
  CHECK(all.endpoint.host == "127.0.0.1");
  CHECK(all.endpoint.port == 80);
  CHECK(all.secret.reveal() == "123");
}

TEST_CASE("a struct may contain itself", "[config][decode]") {
  const auto decoded = decode_text<Tree>("{name: a, branches: [{name: b, branches: [{name: c}]}]}");
  REQUIRE(decoded.value);
  CHECK(decoded.value->branches.at(0).branches.at(0).name == "c");
}

TEST_CASE("an optional is none when nothing is given", "[config][decode]") {
  CHECK(one<std::optional<int>>("5") == "5");
  CHECK(one<std::optional<int>>("") == "none");
  CHECK(one<std::optional<int>>("~") == "none");
  CHECK(one<std::optional<int>>("null") == "none");
  CHECK_FALSE(decode_text<One<std::optional<std::string>>>("value:\n").value->value);
  CHECK(decode_text<One<std::optional<std::string>>>("value: null\n").value->value == "null");
}

TEST_CASE("every mistake is reported at its own place", "[config][decode]") {
  CHECK(mistakes<All>("flag: 1\nitems:\n  a: {}\n  b: {name: x, wieght: 2}\n  c: 5\n"
                      "numbers: [1, x, 3]\nendpoint: nowhere\nlevel: Warning\n") ==
        "f:1:7: expected true or false, got 1\n"
        "f:3:6: expected the key name (a text), got none\n"
        "f:4:16: expected a key (name or weight), got wieght; did you mean weight?\n"
        "f:5:6: expected a mapping, got 5\n"
        "f:6:14: expected an integer from -2147483648 to 2147483647, got x\n"
        "f:7:11: expected an address such as 127.0.0.1:8080, got nowhere\n"
        "f:8:8: expected debug, info or warning, got Warning; did you mean warning?");
  CHECK(mistakes<All>("- a\n") == "f:1:1: expected a mapping, got a list");
  CHECK(mistakes<All>("numbers:\nitems: []\n") ==
        "f:1:1: expected a list, got nothing\nf:2:8: expected a mapping, got a list");
}

TEST_CASE("a struct may check its values together", "[config][decode]") {
  CHECK(mistakes<Range>("{low: 3, high: 5}").empty());
  CHECK(mistakes<Range>("{low: 6, high: 5}") == "f:1:7: expected a number not above high, got 6");
  CHECK(mistakes<Range>("{high: -5}") ==
        "f:1:1: expected a number not above high, got the default of low");
}

TEST_CASE("R-008 odd durations have their plain meaning or are refused with the largest value",
          "[config][decode]") {
  const auto period = [](const std::string& text) -> std::string {
    const auto decoded = decode_text<Waiting>("period: " + text + "\n");
    if (decoded.value) return std::to_string(decoded.value->period.count());
    return decoded.diagnostics.at(0).to_string("f");
  };
  CHECK(period("24d") == "2073600000");
  CHECK(period("50d") == "4320000000");
  CHECK(period("300d") == "25920000000");
  CHECK(period("2147483648ms") == "2147483648");
  CHECK(period("4294967296ms") == "4294967296");
  CHECK(period("1.5s") == "1500");
  CHECK(period("5m") == "300000");
  CHECK(period("\"5s\"") == "5000");

  const std::string refused =
      "f:1:9: expected a duration such as 250ms, 5s or 1.5h of at most 36500d in steps of 1ms, "
      "got ";
  CHECK(period("100y") == refused + "100y");
  CHECK(period("1000000h") == refused + "1000000h");
  CHECK(period("9223372036s") == refused + "9223372036s");
  CHECK(period("99999999999999999999s") == refused + "99999999999999999999s");
  CHECK(period("-1s") == refused + "-1s");
  CHECK(period("1e3s") == refused + "1e3s");
  CHECK(period("\"5 s\"") == refused + "\"5 s\"; did you mean 5s?");
  CHECK(period("5S") == refused + "5S; did you mean 5s?");
  CHECK(period("5min") == refused + "5min; did you mean 5m?");
  CHECK(period("5") == refused + "5; did you mean 5s?");
  CHECK(period("infinity") == refused + "infinity");
  CHECK(period("\"\"") == refused + "\"\"");
  CHECK(period("1us") == refused + "1us");
}

TEST_CASE("R-008 infinity waits for ever where that is allowed, and nothing overflows",
          "[config][decode]") {
  const auto decoded = decode_text<Waiting>("timeout: infinity\nshutdown: infinity\n");
  CHECK(decoded.value->timeout == otp::infinity);
  CHECK(decoded.value->shutdown.is_infinity());
  const auto long_ones =
      decode_text<Waiting>("timeout: 36500d\nshutdown: 36500d\nperiod: 36500d\nexact: 36500d\n");
  CHECK(long_ones.value->timeout.nanoseconds() == kDurationMaxNs);
  CHECK_FALSE(long_ones.value->timeout.is_infinite());
  CHECK(long_ones.value->period == 36500 * 24h);
  CHECK(long_ones.value->exact.count() == 36500.0 * 24 * 3600);
  CHECK(decode_text<Waiting>("shutdown: brutal_kill\n").value->shutdown ==
        otp::Shutdown::brutal_kill);
  CHECK(mistakes<Waiting>("timeout: brutal_kill\nshutdown: infinity1\nseconds: 25000d\n") ==
        "f:1:10: expected a duration such as 250ms, 5s or 1.5h of at most 36500d or infinity, got "
        "brutal_kill\n"
        "f:2:11: expected a duration such as 250ms, 5s or 1.5h of at most 36500d, infinity or "
        "brutal_kill, got infinity1; did you mean infinity?\n"
        "f:3:10: expected a duration such as 250ms, 5s or 1.5h of at most 2147483647s in steps of "
        "1s, got 25000d");
}

TEST_CASE("R-011 a number is the one a reader expects or is refused", "[config][decode]") {
  const std::string refused = "!expected an integer from 0 to 4294967295, got ";
  CHECK(one<uint32_t>("+4") == "4");
  CHECK(one<uint32_t>("4294967295") == "4294967295");
  for (const std::string text : {"010", "08", "0o10", "0x10", "1_000", "1e3", "4.0", "4.5", "-1",
                                 "4294967296", "18446744073709551616", "~", ".inf", "yes"}) {
    CHECK(one<uint32_t>(text) == refused + text);
  }
  CHECK(one<uint32_t>("\"4\"") == refused + "\"4\"; did you mean 4 without quotes?");
  CHECK(one<uint32_t>("") == refused + "nothing");
  CHECK(one<int64_t>("-9223372036854775808") == "-9223372036854775808");
  CHECK(one<int64_t>("-9223372036854775809").substr(0, 1) == "!");
  CHECK(one<uint64_t>("18446744073709551615") == "18446744073709551615");
}

TEST_CASE("R-011 8-bit fields are numbers and a char is a character", "[config][decode]") {
  CHECK(one<uint8_t>("10") == "10");
  CHECK(one<uint8_t>("300") == "!expected an integer from 0 to 255, got 300");
  CHECK(one<uint8_t>("-1") == "!expected an integer from 0 to 255, got -1");
  CHECK(one<uint8_t>("a") == "!expected an integer from 0 to 255, got a");
  CHECK(one<int8_t>("-128") == "-128");
  CHECK(one<int8_t>("-129") == "!expected an integer from -128 to 127, got -129");
  CHECK(one<char>("a") == "a");
  CHECK(one<char>("1") == "1");
  CHECK(one<char>("10") == "!expected one ASCII character, got 10");
  CHECK(one<char>("ä") == "!expected one ASCII character, got ä");
}

TEST_CASE("R-011 only true and false are booleans", "[config][decode]") {
  CHECK(one<bool>("true") == "true");
  CHECK(one<bool>("false") == "false");
  const std::string refused = "!expected true or false, got ";
  CHECK(one<bool>("no") == refused + "no; did you mean false?");
  CHECK(one<bool>("off") == refused + "off; did you mean false?");
  CHECK(one<bool>("N") == refused + "N; did you mean false?");
  CHECK(one<bool>("yes") == refused + "yes; did you mean true?");
  CHECK(one<bool>("True") == refused + "True; did you mean true?");
  CHECK(one<bool>("\"false\"") == refused + "\"false\"; did you mean false without quotes?");
  CHECK(one<bool>("0") == refused + "0");
  CHECK(one<bool>("1") == refused + "1");
}

TEST_CASE("R-011 floating point fields take decimal numbers", "[config][decode]") {
  CHECK(one<float>("4.5") == std::to_string(4.5f));
  CHECK(one<double>("10") == std::to_string(10.0));
  CHECK(one<float>("1e39") == "!expected a decimal number such as 4.5, got 1e39");
  CHECK(one<double>(".nan") == "!expected a decimal number such as 4.5, got .nan");
  CHECK(one<double>("true") == "!expected a decimal number such as 4.5, got true");
  CHECK(one<std::optional<int>>("a") ==
        "!expected an integer from -2147483648 to 2147483647, got a");
}

TEST_CASE("R-011 strings keep the text as it is written", "[config][decode]") {
  for (const std::string text :
       {"no", "012", "1.10", "1e5", "null", "2026-11-30", "~", "true", "0x10", ".inf", "1_000"}) {
    CHECK(one<std::string>(text) == text);
  }
  CHECK(one<std::string>("\"\"") == "");
  CHECK(one<std::string>("") == "!expected a text, got nothing");
  CHECK(one<std::string>("[a]") == "!expected a text, got a list");
}

TEST_CASE("R-013 values of the environment are in no message", "[config][decode]") {
  const Environment environment{{"A", "hunter2"}, {"B", ""}};
  CHECK(
      mistakes<All>("number: ${A}\nlevel: x${A}\nfactor: ${B}\nflag: \"${A}\"\nsize: ${A}\n",
                    environment) ==
      "f:1:9: expected an integer from -9223372036854775808 to 9223372036854775807, got the value "
      "of ${A}\n"
      "f:2:8: expected debug, info or warning, got the value of x${A}\n"
      "f:3:9: expected a decimal number such as 4.5, got the value of ${B}\n"
      "f:4:7: expected true or false, got the value of ${A}\n"
      "f:5:7: expected a size such as 512B, 64KiB or 1.5GiB of at most 1024TiB, got the value of "
      "${A}");
  CHECK(mistakes<All>("secret: [hunter2]\n") == "f:1:9: expected a secret text, got a list");
}

TEST_CASE("R-013 a value of the environment has the type of its field", "[config][decode]") {
  const auto decoded = decode_text<All>(
      "{number: \"${N}\", flag: \"${F:true}\", text: \"${T}\", numbers: [\"${N}\"]}",
      {{"N", "42"}, {"T", "a: b # c"}});
  REQUIRE(decoded.value);
  CHECK(decoded.value->number == 42);
  CHECK(decoded.value->flag);
  CHECK(decoded.value->text == "a: b # c");
  CHECK(decoded.value->numbers == std::vector<int>{42});
}

TEST_CASE("a required value that nobody gave is a fault when it is read", "[config][decode]") {
  otp::Required<std::string> value;
  CHECK_FALSE(value.given());
  CHECK_THROWS_AS(value.get(), std::logic_error);
  value = "x";
  CHECK(value->size() == 1);
  const std::string& text = value;
  CHECK(text == "x");
}

namespace {

struct Shop {};
struct ShopName {
  using ServerClass = Shop;
  std::string name;
};
/// Stands for otp::Server<S>.
struct ShopAddress {
  using ServerClass = Shop;
  ShopAddress(const ShopName& shop) : name(shop.name) {}
  std::string name;
};
std::string where(const ShopAddress& address) { return address.name; }

}  // namespace

TEST_CASE("a required name of a server is an address of it", "[config][decode]") {
  const otp::Required<ShopName> shop = ShopName{"till"};
  CHECK(where(shop) == "till");
  const ShopAddress direct(shop);
  const ShopAddress copied = shop;
  const ShopName name(shop);
  CHECK(direct.name + copied.name + name.name == "tilltilltill");
  CHECK_THROWS_AS(where(otp::Required<ShopName>()), std::logic_error);
}
