#include "otp/base/reflect.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace bank {

struct Empty {};

/// Move-only, refers to itself, and holds a class with neither a default nor a one-value
/// constructor.
struct Everything {
  class Range {
   public:
    Range(int first, int last) : first_(first), last_(last) {}
    int length() const { return last_ - first_; }

   private:
    int first_;
    int last_;
  };

  std::string text;
  std::unique_ptr<int> owned;
  std::vector<Everything> same;
  std::optional<int> maybe;
  std::variant<int, std::string> either;
  std::map<std::string, Empty> table;
  Empty empty;
  Range range;
  double number = 2.5;
};

struct WithArrays {
  int before = 0;
  int numbers[3] = {};
  std::string words[2];
  int grid[2][2] = {};
  char after = 'x';
};

struct Base {
  int base = 0;
};
struct Derived : Base {
  int own = 0;
};
struct WithReference {
  int& reference;
  int own = 0;
};
struct WithConstReference {
  int own = 0;
  const int& reference;
};
class Opaque {
 public:
  explicit Opaque(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

template <class T>
struct Box {
  T content;
};

struct Unicode {
  int zähler = 0;
};

struct Full {
  int a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  int c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
};
struct TooMany {
  Full full;
  int a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
  int c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
};

}  // namespace bank

namespace other {
struct Empty {};
}  // namespace other

namespace {

struct Hidden {
  int value = 0;
};

template <class T>
std::string names_of() {
  std::string names;
  for (const std::string_view name : otp::field_names<T>) {
    if (!names.empty()) names += ' ';
    names += name;
  }
  return names;
}

}  // namespace

TEST_CASE("fields are counted and named in the order of their declaration", "[reflect]") {
  CHECK(names_of<bank::Everything>() == "text owned same maybe either table empty range number");
  CHECK(otp::field_count<bank::Everything> == 9);
  CHECK(otp::field_count<bank::Empty> == 0);
  CHECK(names_of<bank::Empty>().empty());
  CHECK(names_of<bank::Box<std::unique_ptr<int>>>() == "content");
  CHECK(names_of<Hidden>() == "value");
  CHECK(names_of<bank::Unicode>() == "zähler");
  CHECK(names_of<const bank::Base>() == "base");
}

TEST_CASE("an array is one field, however many initialisers it takes", "[reflect]") {
  CHECK(names_of<bank::WithArrays>() == "before numbers words grid after");
  STATIC_REQUIRE(std::is_same_v<otp::field_type<bank::WithArrays, 1>, int[3]>);
}

TEST_CASE("a struct of 32 fields is listed, a larger one is not", "[reflect]") {
  CHECK(otp::field_count<bank::Full> == 32);
  CHECK(otp::field_names<bank::Full>[31] == "d7");
  STATIC_REQUIRE_FALSE(otp::Reflectable<bank::TooMany>);
}

TEST_CASE("what has no list of fields is not reflectable", "[reflect]") {
  STATIC_REQUIRE(otp::Reflectable<bank::Everything>);
  STATIC_REQUIRE_FALSE(otp::Reflectable<bank::Derived>);
  STATIC_REQUIRE_FALSE(otp::Reflectable<bank::WithReference>);
  STATIC_REQUIRE_FALSE(otp::Reflectable<bank::WithConstReference>);
  STATIC_REQUIRE_FALSE(otp::Reflectable<bank::Opaque>);
  STATIC_REQUIRE_FALSE(otp::Reflectable<int>);
  STATIC_REQUIRE_FALSE(otp::Reflectable<int[3]>);
}

TEST_CASE("for_each_field gives each field with its name", "[reflect]") {
  struct Point {
    int x = 1;
    int y = 2;
  } point;
  otp::for_each_field(point,
                      [](std::string_view name, int& field) { field += name == "x" ? 10 : 20; });
  CHECK(point.x == 11);
  CHECK(point.y == 22);

  const Point& fixed = point;
  int sum = 0;
  otp::for_each_field(fixed, [&](std::string_view, const int& field) { sum += field; });
  CHECK(sum == 33);

  bank::Everything all{.text = "t",
                       .owned = std::make_unique<int>(7),
                       .same = {},
                       .maybe = {},
                       .either = {},
                       .table = {},
                       .empty = {},
                       .range = {3, 5}};
  otp::for_each_field(all, [&](std::string_view, auto& field) {
    if constexpr (requires(bank::Everything::Range r) { r = field; }) sum += field.length();
  });
  CHECK(sum == 35);
}

TEST_CASE("type names are those of the source", "[reflect]") {
  STATIC_REQUIRE(otp::type_name<bank::Everything>() == "Everything");
  STATIC_REQUIRE(otp::qualified_type_name<bank::Everything>() == "bank::Everything");
  STATIC_REQUIRE(otp::type_name<bank::Everything::Range>() == "Range");
  STATIC_REQUIRE(otp::type_name<Hidden>() == "Hidden");
  STATIC_REQUIRE(otp::type_name<bank::Box<other::Empty>>() == "Box<other::Empty>");
  STATIC_REQUIRE(otp::type_name<int>() == "int");
}

namespace v1 {
struct Note {
  std::string text;
  int64_t number;
};
struct Outer {
  std::vector<Note> notes;
};
}  // namespace v1

TEST_CASE("a stable hash tells structs of different names and fields apart", "[reflect]") {
  struct A {
    int x;
    int y;
  };
  const auto first = otp::stable_hash<A>;
  {
    struct A {
      int y;
      int x;
    };
    CHECK(otp::stable_hash<A> != first);
  }
  {
    struct A {
      int x;
      long y;
    };
    CHECK(otp::stable_hash<A> != first);
  }
  {
    struct B {
      int x;
      int y;
    };
    CHECK(otp::stable_hash<B> != first);
  }
  CHECK(otp::stable_hash<bank::Empty> != otp::stable_hash<other::Empty>);
  CHECK(otp::stable_hash<long> == otp::stable_hash<long long>);
  CHECK(otp::stable_hash<std::vector<int>> != otp::stable_hash<std::vector<unsigned>>);
  CHECK(otp::stable_hash<std::array<int, 2>> != otp::stable_hash<std::array<int, 3>>);
  CHECK(otp::stable_hash<bank::Everything> != 0);
}

TEST_CASE("a stable hash is the same in every program", "[reflect]") {
  CHECK(otp::stable_hash<int> == 0x42a927718ffabf6e);
  CHECK(otp::stable_hash<v1::Note> == 0xf4e7dbecc82a1129);
  CHECK(otp::stable_hash<v1::Outer> == 0xfb049a3a6696ca65);
}
