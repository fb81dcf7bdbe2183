// The names of an enumeration's enumerators, as the source spells them: the words of configuration
// files, logs and reports.
//
//   enum class Strategy { one_for_one, one_for_all, rest_for_one };
//   otp::enum_name(Strategy::one_for_all)            // "one_for_all"
//   otp::enum_names<Strategy>[0].name                // "one_for_one"
//
// Enumerators from 0 to 63 are found. A name may end in an underscore to avoid a C++ word
// (`default_`): the underscore is not part of the word. For other words, and for an enumeration
// inside a class template, whose enumerators this cannot see, specialise otp::EnumNames.

#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace otp {

template <class E>
struct NamedEnumerator {
  std::string_view name;
  E value;
};

namespace internal {

inline constexpr std::size_t kEnumeratorsMax = 64;

/// Spells enumerators as `otp::Strategy::one_for_one` and values that have none as
/// `(otp::Strategy)7`.
template <class E, E... Values>
consteval std::string_view spelled_enumerators() {
  return __PRETTY_FUNCTION__;
}

template <class E, std::size_t... I>
consteval std::string_view spelled_range(std::index_sequence<I...>) {
  return spelled_enumerators<E, static_cast<E>(I)...>();
}

/// The list in the spelling, `a, b, (E)2`, without what stands around it.
constexpr std::string_view list_in(std::string_view spelling) {
  const std::size_t open = spelling.find("Values = ") + 10;  // after "Values = <" or "Values = {"
  return spelling.substr(open, spelling.size() - 2 - open);
}

/// Where the first item of `list` ends: at a comma outside of template arguments.
constexpr std::size_t item_end(std::string_view list) {
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '<') ++depth;
    if (list[i] == '>') --depth;
    if (list[i] == ',' && depth == 0) return i;
  }
  return list.size();
}

/// `(otp::Strategy)7`, not `(anonymous namespace)::Strategy::one_for_one`.
constexpr bool is_unnamed(std::string_view item) {
  const std::size_t close = item.rfind(')');
  return close != std::string_view::npos && item.substr(close + 1, 1) != ":";
}

/// Calls fn(index, name) for each enumerator in `list`.
template <class Fn>
constexpr void each_enumerator(std::string_view list, Fn fn) {
  for (std::size_t index = 0; !list.empty(); ++index) {
    const std::size_t end = item_end(list);
    std::string_view name = list.substr(0, end);
    list = end + 2 < list.size() ? list.substr(end + 2) : std::string_view{};
    if (is_unnamed(name)) continue;
    name = name.substr(name.rfind("::") == std::string_view::npos ? 0 : name.rfind("::") + 2);
    while (name.size() > 1 && name.back() == '_') name.remove_suffix(1);
    fn(index, name);
  }
}

template <class E>
inline constexpr std::string_view kSpelledList =
    list_in(spelled_range<E>(std::make_index_sequence<kEnumeratorsMax>{}));

template <class E>
consteval std::size_t count_enumerators() {
  std::size_t count = 0;
  each_enumerator(kSpelledList<E>, [&](std::size_t, std::string_view) { ++count; });
  return count;
}

template <class E>
consteval auto found_enumerators() {
  std::array<NamedEnumerator<E>, count_enumerators<E>()> found{};
  std::size_t n = 0;
  each_enumerator(kSpelledList<E>, [&](std::size_t index, std::string_view name) {
    found[n++] = {name, static_cast<E>(index)};
  });
  return found;
}

}  // namespace internal

/// The words for E. Specialise it with another `list` when a word cannot be a C++ name.
template <class E>
struct EnumNames {
  static_assert(std::is_enum_v<E>, "an enumeration is wanted");
  static_assert(internal::count_enumerators<E>() > 0,
                "no enumerator from 0 to 63 can be seen: specialise otp::EnumNames");
  static constexpr auto list = internal::found_enumerators<E>();
};

/// The words for E with their values, in the order of the values.
template <class E>
inline constexpr auto& enum_names = EnumNames<E>::list;

/// The word for `value`; empty when it has none.
template <class E>
constexpr std::string_view enum_name(E value) {
  for (const auto& named : enum_names<E>) {
    if (named.value == value) return named.name;
  }
  return {};
}

}  // namespace otp
