#include "otp/base/enum_names.h"

#include <catch2/catch.hpp>
#include <string>

namespace enum_test {

enum class Strategy { one_for_one, one_for_all, rest_for_one };
enum class Level : unsigned char { default_, low = 5, high = 63 };
enum class Unit { mebibyte };

struct Outer {
  enum class Inner { first, second };
};

}  // namespace enum_test

template <>
struct otp::EnumNames<enum_test::Unit> {
  static constexpr std::array list{
      otp::NamedEnumerator<enum_test::Unit>{"MiB", enum_test::Unit::mebibyte}};
};

namespace {
enum class Hidden { here, there };

template <class E>
std::string words() {
  std::string text;
  for (const auto& named : otp::enum_names<E>) {
    text += std::string(named.name) + "=" + std::to_string(static_cast<int>(named.value)) + " ";
  }
  return text;
}
}  // namespace

using namespace enum_test;

TEST_CASE("enumerators are listed with their names and values", "[enum_names]") {
  CHECK(words<Strategy>() == "one_for_one=0 one_for_all=1 rest_for_one=2 ");
  CHECK(words<Level>() == "default=0 low=5 high=63 ");
  CHECK(words<Hidden>() == "here=0 there=1 ");
  CHECK(words<Outer::Inner>() == "first=0 second=1 ");
}

TEST_CASE("a value is named by its enumerator", "[enum_names]") {
  CHECK(otp::enum_name(Strategy::rest_for_one) == "rest_for_one");
  CHECK(otp::enum_name(static_cast<Strategy>(9)).empty());
}

TEST_CASE("words that are no C++ names are given by a trait", "[enum_names]") {
  CHECK(otp::enum_name(Unit::mebibyte) == "MiB");
}
