#include "otp/release/command_line.h"

#include <catch2/catch.hpp>
#include <clocale>

#include "otp/release/posix.h"

namespace otp::release {
namespace {

using namespace std::chrono_literals;

std::string error_of(const std::vector<std::string>& words) {
  Outcome<CommandLine> line = parse_command_line(words);
  return line.ok() ? "no error" : line.error;
}

TEST_CASE("options may stand before and after the command", "[release][command_line]") {
  Outcome<CommandLine> line = parse_command_line(
      {"--json", "tree", "--config=a=b", "x.yaml", "--timeout", "1.5s", "--", "--json", "y"});
  REQUIRE(line.ok());
  CHECK(line.value->command == "tree");
  CHECK(line.value->operands == std::vector<std::string>{"x.yaml"});
  CHECK(line.value->arguments == std::vector<std::string>{"--json", "y"});
  CHECK(line.value->config == "a=b");
  CHECK(line.value->timeout == 1500ms);
  CHECK(line.value->json);
}

TEST_CASE("wrong options are named", "[release][command_line]") {
  CHECK(error_of({"--verbose"}) == "unknown option '--verbose'");
  CHECK(error_of({"--json=1"}) == "unknown option '--json=1'");
  CHECK(error_of({"--config"}) == "option --config expects a value, got none");
  CHECK(error_of({"--config="}) == "option --config expects a value, got none");
  CHECK(error_of({"--json", "--json"}) == "option --json is given twice");
  CHECK(error_of({"--timeout=soon"}) ==
        "option --timeout expects a duration such as 30s, got 'soon'");
}

TEST_CASE("durations are read whole or not at all", "[release][command_line]") {
  CHECK(parse_duration("30") == 30s);
  CHECK(parse_duration("250ms") == 250ms);
  CHECK(parse_duration("2m") == 2min);
  CHECK(parse_duration("24h") == 24h);
  CHECK(parse_duration("0") == 0ms);
  for (const char* wrong : {"", "s", "-1s", "1 s", "1sec", "25h", "inf", "nan", "1e9h", "0x1s"}) {
    INFO(wrong);
    CHECK_FALSE(parse_duration(wrong));
  }
}

TEST_CASE("R-039 durations do not depend on the locale", "[release][command_line]") {
  // A locale that is not installed changes nothing, which is as good.
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  CHECK(parse_duration("1.5s") == 1500ms);
  std::setlocale(LC_ALL, "C");
}

TEST_CASE("durations are told in two units at most", "[release][command_line]") {
  CHECK(duration_text(999ms) == "0s");
  CHECK(duration_text(61s) == "1m 1s");
  CHECK(duration_text(3h + 59min) == "3h 59m");
  CHECK(duration_text(49h) == "2d 1h");
}

}  // namespace
}  // namespace otp::release
