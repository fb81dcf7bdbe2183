// What yaml-cpp 0.7 would get wrong, and what files from the field look like.

#include "otp/config/parser.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

using namespace otp::config;
using namespace std::string_view_literals;

namespace {

/// A node as one line: scalars as they would be shown, `-` for nothing.
std::string flat(const Node& node) {
  std::string text;
  switch (node.kind) {
    case Node::Kind::nothing: return node.text.empty() ? "-" : node.text;
    case Node::Kind::scalar: return node.got();
    case Node::Kind::list:
      for (const NodePtr& item : node.items) text += (text.empty() ? "" : ", ") + flat(*item);
      return "[" + text + "]";
    case Node::Kind::map:
      for (const Node::Entry& entry : node.entries) {
        text += (text.empty() ? "" : ", ") + entry.key + ": " + flat(*entry.value);
      }
      return "{" + text + "}";
  }
  return text;
}

/// The mistakes of a text, or its nodes on one line.
std::string read(std::string_view yaml) {
  const Environment none;
  const Parsed parsed = parse(yaml, &none);
  std::string text;
  for (const Diagnostic& diagnostic : parsed.diagnostics.sorted()) {
    text += (text.empty() ? "" : "\n") + diagnostic.to_string("f");
  }
  return text.empty() ? flat(*parsed.root) : text;
}

std::string position_of_value(std::string_view yaml, std::string_view key) {
  const Environment none;
  const Parsed parsed = parse(yaml, &none);
  const Node::Entry* entry = parsed.root->find(key);
  return entry == nullptr ? "no such key" : entry->value->at.to_string("f");
}

}  // namespace

TEST_CASE("scalars keep the text that the file has", "[config][parser]") {
  CHECK(read("a: no\nb: 012\nc: 1.10\nd: null\ne: ~\nf:\n") ==
        "{a: no, b: 012, c: 1.10, d: null, e: ~, f: -}");
  CHECK(read("a: 2026-11-30\nb: 1e5\nc: \"no\"\n") == "{a: 2026-11-30, b: 1e5, c: \"no\"}");
  CHECK(read("a: >\n  two\n  lines\nb: 'it''s'\n") == "{a: \"two lines\\n\", b: \"it's\"}");
}

TEST_CASE("positions count lines and characters from 1", "[config][parser]") {
  CHECK(position_of_value("a: 1\n", "a") == "f:1:4");
  CHECK(position_of_value("x: 1\nzähler: 2\n", "zähler") == "f:2:9");
  CHECK(position_of_value("x: {y: 1}\n作業:   2\n", "作業") == "f:2:7");
  CHECK(position_of_value("a:\nb: 1\n", "a") == "f:1:1");
}

TEST_CASE("an empty file, a comment alone and an empty document are nothing", "[config][parser]") {
  const Environment none;
  for (const std::string_view yaml :
       {""sv, "\n\n"sv, "# comment\n"sv, "---\n"sv, "\xef\xbb\xbf"sv}) {
    const Parsed parsed = parse(yaml, &none);
    REQUIRE(parsed.root != nullptr);
    CHECK(parsed.root->is_nothing());
    CHECK(parsed.root->at.line >= 1);
    CHECK(parsed.root->at.column >= 1);
  }
}

TEST_CASE("R-009 merge keys bring what the mapping does not say itself", "[config][parser]") {
  CHECK(
      read("- &base {id: a, start: L, restart: transient, shutdown: 2s}\n- {<<: *base, id: b}\n") ==
      "[{id: a, start: L, restart: transient, shutdown: 2s}, "
      "{id: b, start: L, restart: transient, shutdown: 2s}]");
  CHECK(read("x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3}\n") ==
        "{x: {a: 1, b: 1}, y: {b: 2, c: 2}, z: {c: 3, a: 1, b: 1}}");
  CHECK(read("x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz: {<<: *y}\n") ==
        "{x: {a: 1}, y: {b: 2, a: 1}, z: {b: 2, a: 1}}");
  CHECK(read("\"<<\": 1\n") == "{<<: 1}");
}

TEST_CASE("R-009 a merge of anything but mappings is an error at the <<", "[config][parser]") {
  CHECK(read("a: {<<: 3}\n") == "f:1:5: expected a mapping or a list of mappings after <<, got 3");
  CHECK(read("a: {<<: [{b: 1}, 2]}\n") ==
        "f:1:5: expected a mapping or a list of mappings after <<, got a list");
  CHECK(read("x: &x {a: 1}\ny: {<<: *x, <<: *x}\n") ==
        "f:2:13: expected each key once, got << again (first at 2:5)");
}

TEST_CASE("R-009 aliases must point to what is complete", "[config][parser]") {
  CHECK(read("- &a {id: x}\n- *a\n") == "[{id: x}, {id: x}]");
  CHECK(read("a: *x\nb: &x 1\n") == "f:1:4: expected an anchor that is defined above, got *x");
  CHECK(read("a: &x [*x]\n") ==
        "f:1:8: expected an anchor that is complete, got *x inside its own definition");
  CHECK(read("a: &x {b: {<<: *x}}\n") ==
        "f:1:16: expected an anchor that is complete, got *x inside its own definition");
  CHECK(read("a: &x 1\nb: &x 2\nc: *x\n") == "{a: 1, b: 2, c: 2}");
}

TEST_CASE("R-010 a duplicate key is an error with both positions", "[config][parser]") {
  CHECK(read("intensity: 3\nintensity: 30\n") ==
        "f:2:1: expected each key once, got intensity again (first at 1:1)");
  CHECK(read("a: {currency: EUR, currency: USD}\n") ==
        "f:1:20: expected each key once, got currency again (first at 1:5)");
  CHECK(read("intensity: 3\n\"intensity\": 3\n'intensity': 3\n") ==
        "f:2:1: expected each key once, got intensity again (first at 1:1)\n"
        "f:3:1: expected each key once, got intensity again (first at 1:1)");
  CHECK(read("supervisor: {}\nx: 1\nsupervisor: {}\n") ==
        "f:3:1: expected each key once, got supervisor again (first at 1:1)");
}

TEST_CASE("R-010 two documents are an error at the second", "[config][parser]") {
  CHECK(read("a: 1\n---\nb: 2\n") == "f:2:1: expected one YAML document, got a second one");
  CHECK(read("a: 1\n---\n") == "f:2:1: expected one YAML document, got a second one");
  CHECK(read("---\na: 1\n...\n") == "{a: 1}");
}

TEST_CASE("R-012 a byte order mark and any line ends read like the original", "[config][parser]") {
  const std::string lines[] = {"a: 1", "b:", "  - x # c", "  - y", "c: |", "  t", "  u", "d: 2"};
  std::string plain;
  for (const std::string_view end : {"\n"sv, "\r\n"sv, "\r"sv}) {
    for (const std::string_view mark : {""sv, "\xef\xbb\xbf"sv}) {
      std::string yaml(mark);
      for (const std::string& line : lines) yaml += line + std::string(end);
      if (plain.empty()) plain = read(yaml);
      CHECK(read(yaml) == plain);
    }
  }
  CHECK(plain == "{a: 1, b: [x, y], c: \"t\\nu\\n\", d: 2}");
  CHECK(read("a: 1\r\nb: 2\rc: 3\nd: 4") == "{a: 1, b: 2, c: 3, d: 4}");
}

TEST_CASE("R-012 positions do not count the mark or a carriage return", "[config][parser]") {
  std::string yaml = "\xef\xbb\xbf";
  for (int i = 1; i < 7; ++i) yaml += "# line\r\n";
  yaml += "a: {b: 1, b: 2}\r\n";
  CHECK(read(yaml) == "f:7:11: expected each key once, got b again (first at 7:5)");
}

TEST_CASE("R-012 other encodings and odd bytes are refused where they stand", "[config][parser]") {
  CHECK(read("\xff\xfe"
             "a\0:\0"sv) == "f:1:1: expected UTF-8, got UTF-16");
  CHECK(read("\xfe\xff\0a\0:"sv) == "f:1:1: expected UTF-8, got UTF-16");
  CHECK(read("a\0:\0 \0"sv) == "f:1:1: expected UTF-8, got UTF-16");
  CHECK(read("\xff\xfe\0\0a\0\0\0"sv) == "f:1:1: expected UTF-8, got UTF-32");
  CHECK(read("a: 1\nb: 2\nc: x\0y\nd: 4\n"sv) == "f:3:5: expected text, got a NUL");
  CHECK(read("a: 1\nb: \x04\nc: 3\n") == "f:2:4: expected text, got the control character 0x04");
  CHECK(read("a: \xc2\x80\n") == "f:1:4: expected text, got the control character 0x80");
  CHECK(read("a: \x7f\n") == "f:1:4: expected text, got the control character 0x7F");
  CHECK(read("a: \xe9t\xe9\n") == "f:1:4: expected UTF-8, got the byte 0xE9");
  CHECK(read("a: \xc0\xaf\n") == "f:1:4: expected UTF-8, got the byte 0xC0");
  CHECK(read("a: \xed\xa0\x80\n") == "f:1:4: expected UTF-8, got the byte 0xED");
  CHECK(read("a: \xf4\x90\x80\x80\n") == "f:1:4: expected UTF-8, got the byte 0xF4");
  CHECK(read("a: \xf0\x9f") == "f:1:4: expected UTF-8, got the byte 0xF0");
  CHECK(read("a: \"\\0\"\n") == "f:1:4: expected text, got a NUL");
}

TEST_CASE("R-012 unusual letters are letters", "[config][parser]") {
  CHECK(read("zähler: 1\n作業: 2\n🙂: 3\ne\xcc\x81: 4\na\xc2\xa0"
             "b: 5\n") ==
        "{zähler: 1, 作業: 2, 🙂: 3, e\xcc\x81: 4, a\xc2\xa0"
        "b: 5}");
}

TEST_CASE("R-012 tabs between tokens are blanks", "[config][parser]") {
  CHECK(read("a:\t1\nb: 2\t# comment\nc:\t# comment\n  d: 3\n") == "{a: 1, b: 2, c: {d: 3}}");
}

TEST_CASE("R-012 large comments and scalars are read, files without end are not",
          "[config][parser]") {
  CHECK(read("a: 1\n# " + std::string(5 << 20, 'x') + "\nb: 2\n") == "{a: 1, b: 2}");
  const Environment none;
  const std::string scalar(1 << 20, 'x');
  CHECK(parse("a: " + scalar, &none).root->entries.at(0).value->text == scalar);
  CHECK(read(std::string((16 << 20) + 1, '#')) ==
        "f:1:1: expected a file of at most 16MiB, got 16777217 bytes");
}

TEST_CASE("a tab as indentation is called by its name", "[config][parser]") {
  const std::string tab = "expected spaces as indentation, got a tab";
  CHECK(read("a:\n\tb: 1\n") == "f:2:1: " + tab);
  CHECK(read("a:\n  b: 1\n\tc: 2\n") == "f:3:1: " + tab);
  CHECK(read("a:\n  b:\n  \tc: 2\n") == "f:3:3: " + tab);
  CHECK(read("a: |\n\tx\n") == "f:2:1: " + tab);
}

TEST_CASE("a syntax error is reported alone", "[config][parser]") {
  CHECK(read("a: 1\na: 2\nb: [1, 2\nc: 3\n") ==
        "f:4:2: expected a comma or ] after this value, got :");
  CHECK(read("a: \"x\nb: 2\n") == "f:1:4: expected a closing quote, got the end of the file");
  CHECK(read("a: 'x''\n") == "f:1:4: expected a closing quote, got the end of the file");
  CHECK(read("a: &y \"x\n") == "f:1:7: expected a closing quote, got the end of the file");
  CHECK(read("a: 1\nb\n") == "f:2:2: expected a colon after b, got none");
  CHECK(read("{a:1}\n") == "f:1:5: expected a colon after a:1, got none");
  CHECK(read("[a\n") == "f:1:1: expected a closing bracket for this [, got the end of the file");
  CHECK(read("a: [1]]\n") == "f:1:7: expected no ] or } without its opening bracket, got ]");
  CHECK(read("a: b: c\n") ==
        "f:1:5: expected one `key: value` on a line (a text with `: ` needs quotes), got :");
  CHECK(read("a: \"\\q\"\n") ==
        "f:1:7: expected an escape such as \\n (a backslash itself is \\\\), got \"\\\"\"");
  CHECK(read("a: @b\n") ==
        "f:1:4: expected a value (one that begins with a special character needs quotes), got @b");
  CHECK(read("a: !!str 5\n") ==
        "f:1:4: expected a value without a tag, got the tag tag:yaml.org,2002:str");
  CHECK(read("? [a]\n: b\n") == "f:1:3: expected a key, got a list");
}

TEST_CASE("depth and the visits that aliases cause are limited", "[config][parser]") {
  CHECK(read(std::string(64, '[') + std::string(64, ']')).substr(0, 2) == "[[");
  const std::string deep = "expected at most 64 lists and mappings in each other, got another";
  CHECK(read(std::string(65, '[') + std::string(65, ']')) == "f:1:65: " + deep);
  CHECK(read(std::string(100'000, '[')) ==
        "f:1:1: expected a closing bracket for this [, got the end of the file");
  std::string dashes;
  for (int i = 0; i < 10'000; ++i) dashes += "- ";
  CHECK(read(dashes) == "f:1:129: " + deep);

  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
    for (int j = 0; j < 9; ++j) bomb += ", " + alias;
    bomb += "]\n";
  }
  CHECK(read(bomb) ==
        "f:5:55: expected at most 100000 values, those of aliases included, got more");
}
