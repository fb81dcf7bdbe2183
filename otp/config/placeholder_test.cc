#include "otp/config/placeholder.h"

#include <catch2/catch.hpp>
#include <optional>

#include "otp/config/parser.h"

using namespace otp::config;

namespace {

/// The text after expansion, or `!` and the first mistake.
std::string expand(std::string_view text, const std::optional<std::string>& a) {
  Environment environment;
  if (a) environment["A"] = *a;
  const Expansion expansion = expand_placeholders(text, &environment);
  if (expansion.mistakes.empty()) return expansion.text;
  return "!" + std::to_string(expansion.mistakes[0].nth) + " " + expansion.mistakes[0].expected +
         ", got " + expansion.mistakes[0].got;
}

std::string value_of(std::string_view yaml, const Environment& environment) {
  const Parsed parsed = parse(yaml, &environment);
  std::string text;
  for (const Diagnostic& diagnostic : parsed.diagnostics.sorted()) {
    text += diagnostic.to_string("f") + "\n";
  }
  if (!text.empty()) return text;
  return parsed.root->entries.at(0).value->text;
}

const std::string kUnset =
    "the environment variable A or a default, as in ${A:default}, got neither";

}  // namespace

TEST_CASE("R-013 a variable, its default, and nothing as a value", "[config][placeholder]") {
  CHECK(expand("${A}", std::nullopt) == "!0 " + kUnset);
  CHECK(expand("${A}", "") == "");
  CHECK(expand("${A}", "x") == "x");
  CHECK(expand("${A:}", std::nullopt) == "");
  CHECK(expand("${A:5s}", std::nullopt) == "5s");
  CHECK(expand("${A:5s}", "") == "");
  CHECK(expand("${A:5s}", "7s") == "7s");
  CHECK(expand("p${A}q${A}", "x") == "pxqx");
}

TEST_CASE("R-013 defaults may hold colons, slashes and pairs of braces", "[config][placeholder]") {
  CHECK(expand("${A:http://h:80/x}", std::nullopt) == "http://h:80/x");
  CHECK(expand("${A:{1,2}}", std::nullopt) == "{1,2}");
  CHECK(expand("${A:a}b}", std::nullopt) == "ab}");
  CHECK(expand("${A:-x}", std::nullopt) == "-x");
}

TEST_CASE("R-013 a dollar sign alone is a dollar sign", "[config][placeholder]") {
  CHECK(expand("$A", "x") == "$A");
  CHECK(expand("$$", "x") == "$$");
  CHECK(expand("$${A}", "x") == "${A}");
  CHECK(expand("$$${A}", "x") == "$${A}");
  CHECK(expand("100$", "x") == "100$");
}

TEST_CASE("R-013 mistakes are reported, each with its own placeholder", "[config][placeholder]") {
  const std::string name = "the name of an environment variable after ${, got ";
  CHECK(expand("${}", "x") == "!0 " + name + "nothing");
  CHECK(expand("${A B}", "x") == "!0 " + name + "\"A B\"");
  CHECK(expand("${1A}", "x") == "!0 " + name + "1A");
  CHECK(expand("${:x}", "x") == "!0 " + name + "nothing");
  CHECK(expand("${A", "x") == "!0 } after ${, got the end of the text");
  CHECK(expand("${A:${B:c}}", "x") == "!0 a default without a placeholder in it, got ${B:c}");
  CHECK(expand("${A}$${A}${}", "x") == "!2 " + name + "nothing");
}

TEST_CASE("R-013 what a variable holds is text: one pass, no structure", "[config][placeholder]") {
  for (const std::string value : {"${B}", "${A}", "a: b # c", "x\"y'z\\", "two\nlines"}) {
    INFO(value);
    CHECK(expand("<${A}>", value) == "<" + value + ">");
    CHECK(value_of("k: ${A} # comment ${B}\n", {{"A", value}}) == value);
    CHECK(value_of("k: \"${A}\"\n", {{"A", value}}) == value);
    CHECK(value_of("k: '${A}'\n", {{"A", value}}) == value);
    CHECK(value_of("k: |\n  ${A}\n", {{"A", value}}) == value + "\n");
    CHECK(value_of("k: [\"${A}\"]\n", {{"A", value}}).empty());
  }
  const std::string large(1 << 20, 'x');
  CHECK(expand("${A}", large) == large);
}

TEST_CASE("R-013 a variable that is not UTF-8 is refused", "[config][placeholder]") {
  CHECK(expand("${A}", "\xff") == "!0 UTF-8 in the environment variable A, got other bytes");
}

TEST_CASE("R-013 keys and comments are left alone", "[config][placeholder]") {
  const Environment environment{{"A", "x"}};
  const Parsed parsed = parse("${A}: 1 # ${B}\n", &environment);
  REQUIRE(parsed.diagnostics.empty());
  CHECK(parsed.root->entries.at(0).key == "${A}");
}

TEST_CASE("R-013 positions are those of the placeholders", "[config][placeholder]") {
  const std::string neither =
      "environment variable B or a default, as in ${B:default}, got neither\n";
  CHECK(value_of("k: ä${A}${B}\n", {{"A", "x"}}) == "f:1:9: expected the " + neither);
  CHECK(value_of("k: |\n  ${A}\n  $${C} ${B}\n", {{"A", "x"}}) == "f:3:9: expected the " + neither);
  CHECK(value_of("k: \"x\n   ${B}\"\n", {}) == "f:2:4: expected the " + neither);
}

TEST_CASE("R-013 a placeholder in a flow collection needs quotes and the error says so",
          "[config][placeholder]") {
  CHECK(value_of("k: {a: ${A}}\n", {{"A", "x"}}) ==
        "f:1:9: expected a comma or } after this value, got {A; inside { } and [ ] a placeholder "
        "needs quotes\n");
}

TEST_CASE("R-013 an alias of a scalar is not expanded twice", "[config][placeholder]") {
  const Environment environment{{"A", "${A}"}};
  const Parsed parsed = parse("k: &x ${A}\nl: *x\n", &environment);
  REQUIRE(parsed.diagnostics.empty());
  CHECK(parsed.root->entries.at(1).value->text == "${A}");
}

TEST_CASE("R-013 thousands of bad placeholders end at once", "[config][placeholder]") {
  std::string yaml = "k: \"";
  for (int i = 0; i < 50'000; ++i) yaml += "${}";
  yaml += "\"\n";
  const Environment none;
  CHECK(parse(yaml, &none).diagnostics.size() == 16);
}

TEST_CASE("R-013 without an environment only defaults are used", "[config][placeholder]") {
  CHECK(expand_placeholders("${A:5}", nullptr).text == "5");
  CHECK_FALSE(expand_placeholders("${A:5}", nullptr).unresolved);
  CHECK(expand_placeholders("${A}", nullptr).unresolved);
  CHECK(expand_placeholders("${A}", nullptr).mistakes.empty());
}
