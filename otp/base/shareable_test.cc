#include "otp/base/shareable.h"

#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory_resource>
#include <queue>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "otp/base/pid.h"
#include "otp/base/result.h"

namespace shareable_test {

enum class Currency { euro, dollar };

struct Line {
  std::string text;
  int64_t cents = 0;
};

struct Order {
  std::string account;
  std::vector<Line> lines;
  std::map<std::string, std::optional<Line>> notes;
  std::variant<std::monostate, int, Line> extra;
  std::pair<int, std::tuple<Line, bool>> mixed;
  std::unique_ptr<Order> previous;
  std::vector<Order> parts;
  std::shared_ptr<const Line> table;
  std::chrono::milliseconds wait{0};
  std::chrono::system_clock::time_point at;
  std::array<Line, 2> two;
  Currency currency = Currency::euro;
  otp::Pid from;
  std::filesystem::path file;
  otp::Result<Line> result = otp::Result<Line>(Line{});
  std::queue<Line> queue;
  std::unordered_map<std::string, std::set<int>> index;
};

class Image {
 public:
  explicit Image(int width) : width_(width) {}
  int width() const { return width_; }

 private:
  int width_;
};

class Vouched {
 public:
  explicit Vouched(int* shared) : shared_(shared) {}
  int* shared() const { return shared_; }

 private:
  int* shared_;
};

struct RefusedByAuthor {
  int handle = 0;
};

struct Deep {
  std::vector<std::optional<std::map<int, std::string_view>>> views;
};

struct Recursive {
  std::unique_ptr<Recursive> next;
  int* pointer = nullptr;
};

struct WithArray {
  int numbers[3];
};
struct WithReference {
  const std::string& text;
};
struct Tag {};

template <class Field>
struct Holds {
  int before = 0;
  Field field;
};

template <class Field>
constexpr otp::internal::Refused refused = otp::internal::FirstCulprit<Holds<Field>>::why;

}  // namespace shareable_test

template <>
struct otp::Shareable<shareable_test::Vouched> : std::true_type {};
template <>
struct otp::Shareable<shareable_test::RefusedByAuthor> : std::false_type {};

using namespace shareable_test;
using otp::internal::Refused;

TEST_CASE("values that own what they need are shareable", "[shareable]") {
  STATIC_REQUIRE(otp::is_shareable<int>);
  STATIC_REQUIRE(otp::is_shareable<Tag>);
  STATIC_REQUIRE(otp::is_shareable<Order>);
  STATIC_REQUIRE(otp::is_shareable<std::unique_ptr<Line[]>>);
  STATIC_REQUIRE(otp::is_shareable<std::deque<std::list<Line>>>);
  STATIC_REQUIRE(otp::is_shareable<int (*)(int)>);
  STATIC_REQUIRE(otp::is_shareable<otp::ExitReason>);
  STATIC_REQUIRE(otp::is_shareable<otp::Term>);
  otp::require_shareable<Order>();
}

TEST_CASE("a field that is shared with its sender is refused", "[shareable]") {
  CHECK(refused<int*> == Refused::raw_pointer);
  CHECK(refused<const char*> == Refused::raw_pointer);
  CHECK(refused<std::string_view> == Refused::view);
  CHECK(refused<std::span<const int>> == Refused::view);
  CHECK(refused<std::initializer_list<int>> == Refused::view);
  CHECK(refused<std::shared_ptr<Line>> == Refused::shared_and_mutable);
  CHECK(refused<std::weak_ptr<Line>> == Refused::shared_and_mutable);
  CHECK(refused<std::shared_ptr<const Holds<int*>>> == Refused::raw_pointer);
  CHECK(refused<std::unique_ptr<int*>> == Refused::raw_pointer);
  CHECK(refused<std::pmr::vector<int>> == Refused::borrowed_memory);
  CHECK(refused<std::function<void()>> == Refused::opaque);
  CHECK(refused<std::reference_wrapper<int>> == Refused::opaque);
  CHECK(refused<std::pair<int, int&>> == Refused::reference);
  CHECK(otp::internal::FirstCulprit<WithArray>::why == Refused::c_array);
  CHECK(otp::internal::FirstCulprit<WithReference>::why == Refused::reference);
}

TEST_CASE("a class with private fields is refused until somebody vouches for it", "[shareable]") {
  CHECK(refused<Image> == Refused::opaque);
  CHECK(refused<otp::unchecked<Image>> == Refused::no);
  CHECK(refused<otp::unchecked<int*>> == Refused::no);
  CHECK(refused<Vouched> == Refused::no);
  CHECK(refused<RefusedByAuthor> == Refused::declared);
}

TEST_CASE("the culprit is found however deep it lies, and named with its struct", "[shareable]") {
  using Found = otp::internal::FirstCulprit<Holds<std::vector<Deep>>>;
  STATIC_REQUIRE(Found::why == Refused::view);
  STATIC_REQUIRE(std::is_same_v<Found::Type, std::string_view>);
  STATIC_REQUIRE(
      std::is_same_v<Found::Where,
                     otp::internal::Field<Deep, otp::internal::field_address<Deep, 0>()>>);
}

TEST_CASE("a type being walked counts as good, its other fields do not", "[shareable]") {
  STATIC_REQUIRE(otp::is_shareable<Order>);
  STATIC_REQUIRE(otp::internal::FirstCulprit<Recursive>::why == Refused::raw_pointer);
}

TEST_CASE("an unchecked value is used like a pointer", "[shareable]") {
  otp::unchecked image{Image(7)};
  CHECK(image->width() == 7);
  CHECK((*image).width() == 7);
}
