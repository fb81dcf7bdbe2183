#include "otp/base/format_value.h"

#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <locale>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "otp/base/utf8.h"

namespace format_value_test {

enum class Color { red, green };
enum class Far { away = 1000 };

struct Money {
  int64_t cents = 0;
};

struct Deposit {
  std::string account = {};
  Money amount = {};
  otp::Secret pin = {};
  Color color = Color::red;
  std::optional<int> note = {};
  std::vector<uint8_t> tags = {};
};

struct Empty {};

struct Tree {
  int value = 0;
  std::vector<Tree> children = {};
};

class Opaque {
 public:
  explicit Opaque(int inside) : inside_(inside) {}
  int inside() const { return inside_; }

 private:
  int inside_;
};

class Formatted {
 public:
  explicit Formatted(int inside) : inside_(inside) {}
  void format(otp::BoundedWriter& out) const { out.write("#").number(inside_); }

 private:
  int inside_;
};

// Counts how many elements somebody looked at.
struct Endless {
  struct Iterator {
    int* looked;
    int operator*() const { return ++*looked; }
    Iterator& operator++() { return *this; }
    bool operator!=(const Iterator&) const { return true; }
  };
  Iterator begin() const { return {looked.get()}; }
  Iterator end() const { return {looked.get()}; }
  std::shared_ptr<int> looked = std::make_shared<int>(0);
};

}  // namespace format_value_test

using namespace format_value_test;

namespace {

template <class T>
std::string text_of(const T& value, size_t bytes_max = 10'000) {
  otp::BoundedWriter out(bytes_max);
  otp::format_value(out, value);
  return out.take();
}

}  // namespace

TEST_CASE("plain structs are printed by the names of their fields", "[format]") {
  const Deposit deposit{.account = "a-17",
                        .amount = {.cents = 500},
                        .pin = otp::Secret("1234"),
                        .color = Color::green,
                        .note = {},
                        .tags = {1, 255}};
  CHECK(text_of(deposit) ==
        "Deposit{account: \"a-17\", amount: Money{cents: 500}, pin: ***, color: green, note: null, "
        "tags: [1, 255]}");
  CHECK(text_of(Empty{}) == "Empty{}");
}

TEST_CASE("R-027 a secret is masked wherever it is", "[format]") {
  const std::map<std::string, std::vector<otp::Secret>> nested{{"k", {otp::Secret("hunter2")}}};
  CHECK(text_of(nested) == "{\"k\": [***]}");
  CHECK(text_of(std::make_shared<otp::Secret>("hunter2")) == "***");
  CHECK(text_of(std::optional<otp::Secret>(otp::Secret("hunter2"))) == "***");
}

TEST_CASE("values of the standard library", "[format]") {
  CHECK(text_of(true) == "true");
  CHECK(text_of('x') == "\"x\"");
  CHECK(text_of(int8_t{-3}) == "-3");
  CHECK(text_of(uint64_t{18446744073709551615u}) == "18446744073709551615");
  CHECK(text_of(1.5) == "1.5");
  CHECK(text_of("literal") == "\"literal\"");
  CHECK(text_of(std::string_view("a\"b\\\n\x01\xff\xc3\xa9")) ==
        "\"a\\\"b\\\\\\n\\x01\\xff\xc3\xa9\"");
  CHECK(text_of(static_cast<const char*>(nullptr)) == "null");
  CHECK(text_of(std::pair(1, std::string("x"))) == "{1, \"x\"}");
  CHECK(text_of(std::tuple<>()) == "{}");
  CHECK(text_of(std::variant<int, std::string>("v")) == "\"v\"");
  CHECK(text_of(std::monostate()) == "none");
  CHECK(text_of(std::set<int>{3, 1}) == "[1, 3]");
  CHECK(text_of(std::array<int, 2>{1, 2}) == "[1, 2]");
  CHECK(text_of(std::deque<bool>{true}) == "[true]");
  CHECK(text_of(std::vector<bool>{true, false}) == "[true, false]");
  CHECK(text_of(std::unique_ptr<int>()) == "null");
  CHECK(text_of(std::chrono::milliseconds(1500)) == "1.5s");
  CHECK(text_of(static_cast<Color>(7)) == "7");
  CHECK(text_of(Far::away) == "1000");
  CHECK(text_of(Opaque(1)) == "Opaque");
  CHECK(text_of(Formatted(7)) == "#7");
}

TEST_CASE("values of the library", "[format]") {
  CHECK(text_of(otp::Pid{.node = 0, .id = 5}) == "<0.5.0>");
  CHECK(text_of(otp::ExitReason::timeout()) == "timeout");
  CHECK(text_of(otp::Term::tuple({otp::Term::literal("a"), 1, "text", otp::Term::list({2.5})})) ==
        "{a,1,\"text\",[2.5]}");
  CHECK(text_of(otp::Term()) == "undefined");
}

TEST_CASE("long and deep values are cut and say so", "[format]") {
  CHECK(text_of(std::vector<int>(1000, 7)).ends_with("7, ...] (1000 elements)"));
  CHECK(text_of(std::string(1000, 'x')).ends_with("xxx\"... (1000 bytes)"));
  Tree tree;
  for (int depth = 0; depth < 100; ++depth) {
    Tree above;
    above.children.push_back(std::move(tree));
    tree = std::move(above);
  }
  CHECK(text_of(tree).size() < 400);
  CHECK_THAT(text_of(tree), Catch::Contains("..."));
  otp::Term term = 1;
  for (int depth = 0; depth < 100; ++depth) term = otp::Term::tuple({term});
  CHECK(text_of(term) == "{{{{{{{{{...}}}}}}}}}");
  CHECK(text_of(otp::Term(std::string(100'000, 'x'))).size() < 400);
}

TEST_CASE("R-027 no more is looked at than fits", "[format]") {
  Endless endless;
  otp::BoundedWriter out(20, {.elements_max = 1'000'000});
  otp::format_value(out, endless);
  CHECK(out.full());
  CHECK(out.text() == "[1, 2, 3, 4, 5, 6, 7");
  CHECK(*endless.looked < 10);
}

TEST_CASE("R-027 sections are bounded each, and by the whole", "[format]") {
  otp::BoundedWriter out(60);
  out.section(10, [](otp::BoundedWriter& part) { part.write(std::string(1000, 'a')); });
  out.write("|");
  out.section(10, [](otp::BoundedWriter& part) { part.write("small"); });
  out.write("|");
  CHECK(out.text() == "aaaaaaaaaa... (cut)|small|");
  CHECK_FALSE(out.full());
  out.section(1000, [](otp::BoundedWriter& part) { part.write(std::string(1000, 'b')); });
  CHECK(out.full());
  CHECK(out.size() == 60);
}

TEST_CASE("R-033 a limit never halves a letter", "[format]") {
  for (size_t limit = 0; limit < 12; ++limit) {
    otp::BoundedWriter out(limit);
    out.write("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CHECK(out.size() <= limit);
    CHECK(otp::is_valid_utf8(out.text()));
  }
}

TEST_CASE("R-039 the global locale changes no digit", "[format]") {
  class Grouping : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string text = text_of(std::pair(1234567, 1234.5));
  std::locale::global(before);
  CHECK(text == "{1234567, 1234.5}");
}
