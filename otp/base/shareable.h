// Shareable: what may be given to another process.
//
// Processes share nothing, so a message may hold only what can be given away: values that own what
// they need. A plain struct is walked field by field; the first field that is a raw pointer, a
// reference, a view, a shared pointer to data that can change, a C array or a class whose inside
// cannot be seen stops the build, named, with what to hold instead.
//
//   struct Deposit { std::string account; int64_t cents; };        // shareable
//   struct Broken  { std::string_view account; };                  // "a view ... hold a
//   std::string"
//
// A class with private fields is refused until its author vouches for it, next to the class:
//
//   template <> struct otp::Shareable<Image> : std::true_type {};  // Image owns its pixels
//
// otp::unchecked<T> vouches for one value in one place instead. Both can be found with grep.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "otp/base/reflect.h"

namespace otp {

class Term;
class ExitReason;
template <class T>
class Result;

/// Says of a class whose fields cannot be seen whether it may be given to another process.
///
/// Specialise it, deriving from std::true_type or std::false_type.
template <class T>
struct Shareable {
  using Undecided = void;
};

/// A value that its sender vouches for: the compiler does not look inside.
///
/// For a pointer to something immutable that outlives both processes, say. Not for sharing state:
/// nothing guards it.
template <class T>
struct unchecked {  // NOLINT: lower case, as it is used like a cast
  T value;

  constexpr T& operator*() noexcept { return value; }
  constexpr const T& operator*() const noexcept { return value; }
  constexpr T* operator->() noexcept { return &value; }
  constexpr const T* operator->() const noexcept { return &value; }
};
template <class T>
unchecked(T) -> unchecked<T>;

template <class T>
struct Shareable<unchecked<T>> : std::true_type {};
template <>
struct Shareable<Term> : std::true_type {};
template <>
struct Shareable<ExitReason> : std::true_type {};

namespace internal {

enum class Refused {
  no,
  raw_pointer,
  reference,
  view,
  shared_and_mutable,
  c_array,
  borrowed_memory,
  declared,
  opaque
};

/// In a diagnostic: the message itself.
struct WholeMessage {};

/// The first thing in a message that cannot be given away, or Refused::no.
template <Refused W, class At, class T>
struct Culprit {
  static constexpr Refused why = W;
  using Where = At;
  using Type = T;
};
using NoCulprit = Culprit<Refused::no, WholeMessage, void>;

// What the standard library's types are made of.

template <class T>
inline constexpr bool kIsSharedPointer = false;
template <class T>
inline constexpr bool kIsSharedPointer<std::shared_ptr<T>> = true;
template <class T>
inline constexpr bool kIsSharedPointer<std::weak_ptr<T>> = true;

template <class T>
inline constexpr bool kIsOwner = false;  // holds values of exactly its template arguments
template <class T>
inline constexpr bool kIsOwner<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsOwner<std::unique_ptr<T>> = true;
template <class... T>
inline constexpr bool kIsOwner<std::variant<T...>> = true;
template <class T, class U>
inline constexpr bool kIsOwner<std::pair<T, U>> = true;
template <class... T>
inline constexpr bool kIsOwner<std::tuple<T...>> = true;

template <class T>
inline constexpr bool kIsOwner<Result<T>> = true;

template <class T>
inline constexpr bool kIsTime = false;
template <class R, class P>
inline constexpr bool kIsTime<std::chrono::duration<R, P>> = true;
template <class C, class D>
inline constexpr bool kIsTime<std::chrono::time_point<C, D>> = true;

template <class T>
struct ArgumentsOf {
  using List = TypeList<>;
};
template <template <class...> class C, class... A>
struct ArgumentsOf<C<A...>> {
  using List = TypeList<A...>;
};
template <class T>
struct ArgumentsOf<std::unique_ptr<T>> {
  using List = TypeList<std::remove_extent_t<T>>;
};

template <class T>
concept Decided = !requires { typename Shareable<T>::Undecided; };

template <class T>
concept Range = requires(T& t) {
  typename T::value_type;
  t.begin();
  t.end();
};

template <class T>
concept OwningRange = Range<T> && requires { typename T::allocator_type; };

template <class T>
concept StdArray = requires { std::tuple_size<T>::value; } && Range<T>;

/// std::queue, std::stack and the like.
template <class T>
concept Adapter = requires { typename T::container_type; };

/// A range of values that somebody else owns: std::string_view, std::span, std::initializer_list.
template <class T>
concept ForeignRange = Range<T> && !OwningRange<T> && std::is_trivially_copyable_v<T>;

template <class T>
consteval bool is_known_value() {
  constexpr std::string_view name = qualified_type_name<T>();
  return name == "std::filesystem::path" || name == "std::error_code" ||
         name == "std::thread::id" || name.substr(0, 12) == "std::bitset<" ||
         name.substr(0, 13) == "std::complex<";
}

template <class T, class Where, class... Seen>
consteval auto culprit_in();

template <class Where, class... Seen, class... T>
consteval auto culprit_among(TypeList<T...>) {
  if constexpr (sizeof...(T) == 0) {
    return NoCulprit{};
  } else {
    return []<class First, class... Rest>(TypeList<First, Rest...>) {
      constexpr auto found = culprit_in<First, Where, Seen...>();
      if constexpr (found.why != Refused::no) {
        return found;
      } else {
        return culprit_among<Where, Seen...>(TypeList<Rest...>{});
      }
    }(TypeList<T...>{});
  }
}

template <class T, std::size_t I, class... Seen>
consteval auto culprit_from_field() {
  if constexpr (I == kRawFieldCount<T>) {
    return NoCulprit{};
  } else {
    using F = typename TypeAt<I, FieldTypes<T>>::type;
    constexpr auto found = culprit_in<F, Field<T, field_address<T, I>()>, T, Seen...>();
    if constexpr (found.why != Refused::no) {
      return found;
    } else {
      return culprit_from_field<T, I + 1, Seen...>();
    }
  }
}

template <class T, class Where, class... Seen>
consteval auto culprit_in_class() {
  if constexpr (kIsTime<T> || is_known_value<T>()) {
    return NoCulprit{};
  } else if constexpr (kIsSharedPointer<T>) {
    if constexpr (std::is_const_v<typename T::element_type>) {
      return culprit_in<typename T::element_type, Where, Seen...>();
    } else {
      return Culprit<Refused::shared_and_mutable, Where, T>{};
    }
  } else if constexpr (kIsOwner<T>) {
    return culprit_among<Where, T, Seen...>(typename ArgumentsOf<T>::List{});
  } else if constexpr (OwningRange<T>) {
    if constexpr (std::is_empty_v<typename T::allocator_type>) {
      return culprit_in<typename T::value_type, Where, T, Seen...>();
    } else {
      return Culprit<Refused::borrowed_memory, Where, T>{};
    }
  } else if constexpr (StdArray<T>) {
    return culprit_in<typename T::value_type, Where, Seen...>();
  } else if constexpr (Adapter<T>) {
    return culprit_in<typename T::container_type, Where, Seen...>();
  } else if constexpr (ForeignRange<T>) {
    return Culprit<Refused::view, Where, T>{};
  } else if constexpr (std::is_empty_v<T>) {
    return NoCulprit{};
  } else if constexpr (kPlainness<T> == Plain::has_reference) {
    return Culprit<Refused::reference, Where, T>{};
  } else if constexpr (kPlainness<T> == Plain::yes) {
    return culprit_from_field<T, 0, Seen...>();
  } else {
    return Culprit<Refused::opaque, Where, T>{};
  }
}

template <class T, class Where, class... Seen>
consteval auto culprit_in() {
  using U = std::remove_cv_t<T>;
  if constexpr ((std::is_same_v<U, Seen> || ...)) {
    return NoCulprit{};  // being walked already: good, unless the walk says otherwise
  } else if constexpr (std::is_reference_v<U>) {
    return Culprit<Refused::reference, Where, U>{};
  } else if constexpr (std::is_array_v<U>) {
    return Culprit<Refused::c_array, Where, U>{};
  } else if constexpr (std::is_pointer_v<U>) {
    if constexpr (std::is_function_v<std::remove_pointer_t<U>>) {
      return NoCulprit{};  // code is nobody's
    } else {
      return Culprit<Refused::raw_pointer, Where, U>{};
    }
  } else if constexpr (Decided<U>) {
    if constexpr (Shareable<U>::value) {
      return NoCulprit{};
    } else {
      return Culprit<Refused::declared, Where, U>{};
    }
  } else if constexpr (std::is_class_v<U>) {
    return culprit_in_class<U, Where, Seen...>();
  } else if constexpr (std::is_union_v<U>) {
    return Culprit<Refused::opaque, Where, U>{};
  } else {
    return NoCulprit{};  // numbers, enumerations, nullptr_t, void, pointers to members
  }
}

template <class T>
using FirstCulprit = decltype(culprit_in<T, WholeMessage>());

/// Names the culprit in the first line of the diagnostic.
template <class Where>
inline constexpr bool can_be_given_away = false;

}  // namespace internal

/// T can be given to another process.
template <class T>
inline constexpr bool is_shareable = internal::FirstCulprit<T>::why == internal::Refused::no;

/// Stops the build, with the field and the reason, unless T can be given to another process.
///
/// For the library's own doors (call, cast, send, spawn); it costs nothing at run time.
template <class T>
consteval void require_shareable() {
  using internal::can_be_given_away;
  using internal::Refused;
  using C = internal::FirstCulprit<T>;
  using At = typename C::Where;
  constexpr Refused why = C::why;
  static_assert(can_be_given_away<At> || why != Refused::raw_pointer,
                "a raw pointer would be shared by two processes: hold the value, a "
                "std::unique_ptr or a key");
  static_assert(can_be_given_away<At> || why != Refused::reference,
                "a reference would be shared by two processes: hold the value");
  static_assert(can_be_given_away<At> || why != Refused::view,
                "a view shows memory that its owner may change or free: hold a std::string or a "
                "std::vector");
  static_assert(can_be_given_away<At> || why != Refused::shared_and_mutable,
                "a shared pointer to data that can change would be shared by two processes: hold "
                "a std::unique_ptr, or a std::shared_ptr to const");
  static_assert(can_be_given_away<At> || why != Refused::c_array,
                "a C array is no value: hold a std::array");
  static_assert(can_be_given_away<At> || why != Refused::borrowed_memory,
                "a container whose allocator points to memory of its owner: use std::allocator");
  static_assert(can_be_given_away<At> || why != Refused::declared,
                "its author declared by otp::Shareable that it must not be given away");
  static_assert(can_be_given_away<At> || why != Refused::opaque,
                "a class whose fields cannot be seen: specialise otp::Shareable for it, or wrap "
                "the value in otp::unchecked");
}

}  // namespace otp
