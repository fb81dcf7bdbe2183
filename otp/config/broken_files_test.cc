// Twelve files as people break them, with the exact texts that they get.

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "otp/config/testing/bank.h"

namespace {

std::string mistakes_in(const std::string& name) {
  std::ifstream file("tests/data/" + name, std::ios::binary);
  REQUIRE(file.is_open());
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const auto result = otp::config::check(bytes.str(), name, {bank::application()}, {});
  CHECK_FALSE(result.ok());
  return result.text();
}

}  // namespace

TEST_CASE("unknown keys name the keys that exist and the nearest of them", "[config][broken]") {
  CHECK(mistakes_in("unknown_key.yaml") ==
        "unknown_key.yaml:4:3: expected a key of a supervisor (strategy, intensity, period, "
        "auto_shutdown or children), got intesity; did you mean intensity?\n"
        "unknown_key.yaml:6:57: expected an argument of Ledger (currency, opening_cents, audited, "
        "tellers, rounding or password), got opening_cent; did you mean opening_cents?\n");
}

TEST_CASE("values of a wrong type are all reported", "[config][broken]") {
  CHECK(mistakes_in("wrong_type.yaml") ==
        "wrong_type.yaml:3:13: expected one_for_one, one_for_all or rest_for_one, got one_for_al; "
        "did you mean one_for_all?\n"
        "wrong_type.yaml:4:14: expected an integer from 0 to 4294967295, got many\n"
        "wrong_type.yaml:9:19: expected a text, got a list\n"
        "wrong_type.yaml:10:24: expected an integer from -9223372036854775808 to "
        "9223372036854775807, got \"100\"; did you mean 100 without quotes?\n"
        "wrong_type.yaml:11:18: expected true or false, got yes; did you mean true?\n"
        "wrong_type.yaml:12:18: expected an integer from 0 to 255, got 300\n");
}

TEST_CASE("an unknown server names those of the application", "[config][broken]") {
  CHECK(mistakes_in("unknown_server.yaml") ==
        "unknown_server.yaml:4:27: expected a server of bank (Ledger, Teller, Audit or Clock), got "
        "Leger; did you mean Ledger?\n");
}

TEST_CASE("duplicate ids and names give both positions", "[config][broken]") {
  CHECK(mistakes_in("duplicate_id.yaml") ==
        "duplicate_id.yaml:5:12: expected an id that no other child of this supervisor has, got "
        "ledger again (first at 4:12)\n"
        "duplicate_id.yaml:5:41: expected a name that no other child has, got ledger again (first "
        "at 4:41)\n");
}

TEST_CASE("bad durations say the largest value allowed", "[config][broken]") {
  CHECK(
      mistakes_in("bad_duration.yaml") ==
      "bad_duration.yaml:3:11: expected a duration such as 250ms, 5s or 1.5h of at most 36500d, "
      "got 5; did you mean 5s?\n"
      "bad_duration.yaml:5:39: expected a duration such as 250ms, 5s or 1.5h of at most 36500d, "
      "infinity or brutal_kill, got 100y\n"
      "bad_duration.yaml:6:39: expected a duration such as 250ms, 5s or 1.5h of at most 36500d, "
      "infinity or brutal_kill, got -1s\n"
      "bad_duration.yaml:6:58: expected a duration such as 250ms, 5s or 1.5h of at most 36500d in "
      "steps of 1ms, got infinity\n"
      "bad_duration.yaml:7:39: expected a duration such as 250ms, 5s or 1.5h of at most 36500d, "
      "infinity or brutal_kill, got infinty; did you mean infinity?\n"
      "bad_duration.yaml:7:62: expected a duration such as 250ms, 5s or 1.5h of at most 36500d in "
      "steps of 1ms, got 1500us\n");
}

TEST_CASE("a missing argument is reported at the child or its args", "[config][broken]") {
  CHECK(
      mistakes_in("missing_argument.yaml") ==
      "missing_argument.yaml:4:7: expected the argument currency of Ledger (a text), got none\n"
      "missing_argument.yaml:8:13: expected the argument currency of Ledger (a text), got none\n");
}

TEST_CASE("a reference must name a child of the right server", "[config][broken]") {
  CHECK(mistakes_in("bad_reference.yaml") ==
        "bad_reference.yaml:6:47: expected the name of a child that runs Ledger (ledger), got "
        "leger; did you mean ledger?\n"
        "bad_reference.yaml:7:47: expected the name of a child that runs Ledger, got audit, which "
        "runs Audit\n"
        "bad_reference.yaml:8:49: expected the name of a child that runs Ledger, got four, the id "
        "of a child without a name: give it a `name`\n");
}

TEST_CASE("a tab as indentation is the one error", "[config][broken]") {
  CHECK(mistakes_in("tab_indentation.yaml") ==
        "tab_indentation.yaml:3:1: expected spaces as indentation, got a tab\n");
}

TEST_CASE("an empty file is reported at its first character", "[config][broken]") {
  CHECK(mistakes_in("empty_file.yaml") ==
        "empty_file.yaml:1:1: expected the keys application and supervisor, got an empty file\n");
}

TEST_CASE("an alias bomb is refused where it grows too large", "[config][broken]") {
  CHECK(mistakes_in("alias_bomb.yaml") ==
        "alias_bomb.yaml:6:55: expected at most 100000 values, those of aliases included, got "
        "more\n");
}

TEST_CASE("bytes that are not UTF-8 are refused where they stand", "[config][broken]") {
  CHECK(mistakes_in("not_utf8.yaml") == "not_utf8.yaml:4:13: expected UTF-8, got the byte 0xE4\n");
}

TEST_CASE("unset variables are reported at their placeholders", "[config][broken]") {
  CHECK(
      mistakes_in("unset_variable.yaml") ==
      "unset_variable.yaml:7:19: expected the environment variable BANK_CURRENCY or a default, as "
      "in ${BANK_CURRENCY:default}, got neither\n"
      "unset_variable.yaml:9:27: expected the environment variable BANK_PASSWORD or a default, as "
      "in ${BANK_PASSWORD:default}, got neither\n");
}
