#include "otp/config/scalar.h"

#include <catch2/catch.hpp>
#include <chrono>

using namespace otp::config;
using namespace std::chrono_literals;

namespace {

int64_t ns(std::string_view text) {
  const auto reading = read_duration(text);
  return reading.missed == Missed::no ? reading.value : -1;
}

int64_t bytes(std::string_view text) {
  const auto reading = read_bytes(text);
  return reading.missed == Missed::no ? static_cast<int64_t>(reading.value) : -1;
}

}  // namespace

TEST_CASE("durations are a number and a unit", "[config][scalar]") {
  CHECK(ns("0s") == 0);
  CHECK(ns("7ns") == 7);
  CHECK(ns("3us") == 3'000);
  CHECK(ns("250ms") == 250'000'000);
  CHECK(ns("5s") == 5'000'000'000);
  CHECK(ns("5m") == std::chrono::nanoseconds(5min).count());
  CHECK(ns("2h") == std::chrono::nanoseconds(2h).count());
  CHECK(ns("36500d") == kDurationMaxNs);
  CHECK(ns("1.5s") == 1'500'000'000);
  CHECK(ns("0.1s") == 100'000'000);
  CHECK(ns("0.000000001s") == 1);
  CHECK(ns("1.250000000000s") == 1'250'000'000);
}

TEST_CASE("a duration that is no plain number of a unit is wrong", "[config][scalar]") {
  for (const char* text :
       {"",       "s",    "5",        "5 s",   " 5s",           "5s ",   "5S",
        "5min",   "-1s",  "+1s",      "1e3s",  "010s",          ".5s",   "5.s",
        "1.5.5s", "100y", "infinity", "0.5ns", "0.0000000001s", "1h30m", "5\xc2\xb5s",
        "nan",    "0x5s"}) {
    INFO(text);
    CHECK(read_duration(text).missed == Missed::wrong);
  }
}

TEST_CASE("a duration above a hundred years is too large, however many digits it has",
          "[config][scalar]") {
  for (const char* text : {"36501d", "1000000h", "9223372036s", "99999999999999999999s",
                           "36500.000001d", "340282366920938463463374607431768211456s"}) {
    INFO(text);
    CHECK(read_duration(text).missed == Missed::too_large);
  }
}

TEST_CASE("durations print in the largest unit that is exact", "[config][scalar]") {
  CHECK(duration_text(0) == "0s");
  CHECK(duration_text(1'500'000'000) == "1500ms");
  CHECK(duration_text(90'000'000'000) == "90s");
  CHECK(duration_text(120'000'000'000) == "2m");
  CHECK(duration_text(kDurationMaxNs) == "36500d");
}

TEST_CASE("near misses of durations and sizes are recognised", "[config][scalar]") {
  CHECK(near_duration("5") == "5s");
  CHECK(near_duration("5S") == "5s");
  CHECK(near_duration("5 s") == "5s");
  CHECK(near_duration("5min") == "5m");
  CHECK(near_duration("5 seconds") == "5s");
  CHECK(near_duration("100y").empty());
  CHECK(near_duration("soon").empty());
  CHECK(near_bytes("64kb") == "64KiB");
  CHECK(near_bytes("64K") == "64KiB");
  CHECK(near_bytes("10 MB") == "10MiB");
  CHECK(near_bytes("512") == "512B");
  CHECK(near_bytes("12 parsecs").empty());
}

TEST_CASE("sizes are a number and a binary unit", "[config][scalar]") {
  CHECK(bytes("0B") == 0);
  CHECK(bytes("512B") == 512);
  CHECK(bytes("64KiB") == 65'536);
  CHECK(bytes("1.5KiB") == 1'536);
  CHECK(bytes("0.5MiB") == 524'288);
  CHECK(bytes("1024TiB") == static_cast<int64_t>(kBytesMax));
  for (const char* text : {"", "64", "64KB", "64kib", "1.0001KiB", "-1B", "1EiB", "0.3B"}) {
    INFO(text);
    CHECK(read_bytes(text).missed == Missed::wrong);
  }
  CHECK(read_bytes("1025TiB").missed == Missed::too_large);
  CHECK(read_bytes("99999999999999999999B").missed == Missed::too_large);
}

TEST_CASE("whole numbers are decimal, without leading zeros", "[config][scalar]") {
  CHECK(read_whole_number("18446744073709551615").value.magnitude == UINT64_MAX);
  CHECK(read_whole_number("-9223372036854775808").value.negative);
  CHECK(read_whole_number("+4").value.magnitude == 4);
  CHECK(read_whole_number("18446744073709551616").missed == Missed::too_large);
  for (const char* text : {"", "-", "010", "08", "0x10", "0o10", "1_000", "1e3", "4.0", " 4", "4 ",
                           "--4", "+-4", "\xd9\xa4"}) {
    INFO(text);
    CHECK(read_whole_number(text).missed == Missed::wrong);
  }
}

TEST_CASE("numbers are decimal and finite", "[config][scalar]") {
  CHECK(read_number("4.5").value == 4.5);
  CHECK(read_number("-1e3").value == -1000);
  CHECK(read_number("+0.25").value == 0.25);
  CHECK(read_number("7").value == 7);
  for (const char* text :
       {"", ".inf", "inf", "nan", "infinity", "1,5", "0x1p3", "010", "1.5f", "."}) {
    INFO(text);
    CHECK(read_number(text).missed == Missed::wrong);
  }
  CHECK(read_number("1e999").missed == Missed::too_large);
}
