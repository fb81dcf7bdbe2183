// Which C++ types a configuration can fill: checked before a description is made, so that the first
// field that does not fit is named in a short diagnostic.

#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/base/bytes.h"
#include "otp/base/reflect.h"
#include "otp/base/secret.h"
#include "otp/base/timeout.h"
#include "otp/config/required.h"
#include "otp/supervision/child_spec_types.h"

namespace otp {

/// How a class of the user's is written in a configuration. Specialise it with
///
///     static constexpr std::string_view expected = "an address such as 127.0.0.1:8080";
///     static std::optional<T> parse(std::string_view text);
template <class T>
struct ConfigText;

/// Makes T a reference to another child of the tree. otp::Name<S> is one, like every type with a
/// `ServerClass` that is made from a std::string; specialise it for others with
///
///     static constexpr std::string_view server = otp::qualified_type_name<Ledger>();
///     static T from_name(std::string name);   // the child's registered name
template <class T>
struct ConfigReference;

template <class T>
  requires(std::is_constructible_v<T, std::string> && requires { typename T::ServerClass; })
struct ConfigReference<T> {
  static constexpr std::string_view server = qualified_type_name<typename T::ServerClass>();
  static T from_name(std::string name) { return T(std::move(name)); }
};

namespace config::internal {

template <class T>
inline constexpr bool kIsDuration = false;
template <class R, class P>
inline constexpr bool kIsDuration<std::chrono::duration<R, P>> = true;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsRequired = false;
template <class T>
inline constexpr bool kIsRequired<Required<T>> = true;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsMap = false;
template <class T, class C>
inline constexpr bool kIsMap<std::map<std::string, T, C>> = true;

template <class T>
concept HasText = requires(std::string_view text) {
  { ConfigText<T>::parse(text) } -> std::same_as<std::optional<T>>;
};

template <class T>
concept IsReference = requires(std::string name) {
  { ConfigReference<T>::from_name(name) } -> std::same_as<T>;
};

template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                                   !std::is_same_v<T, char> && sizeof(T) <= sizeof(uint64_t);

template <class T>
inline constexpr bool kIsScalar =
    HasText<T> || IsReference<T> || std::is_same_v<T, bool> || std::is_same_v<T, char> ||
    kIsInteger<T> || std::is_floating_point_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, Secret> || std::is_same_v<T, Bytes> || std::is_same_v<T, Timeout> ||
    std::is_same_v<T, Shutdown> || kIsDuration<T> || std::is_enum_v<T>;

enum class Unfit { no, c_array, vector_of_bool, base, reference, too_many, opaque };

/// In a diagnostic: the struct itself rather than one of its fields.
struct WholeStruct {};

/// The first thing in a struct that a configuration cannot fill, or Unfit::no.
template <Unfit W, class At = WholeStruct>
struct Misfit {
  static constexpr Unfit why = W;
  using Where = At;
};

constexpr Unfit unfit_of(otp::internal::Plain plain) {
  using otp::internal::Plain;
  switch (plain) {
    case Plain::yes: return Unfit::no;
    case Plain::has_base: return Unfit::base;
    case Plain::has_reference: return Unfit::reference;
    case Plain::too_many: return Unfit::too_many;
    default: return Unfit::opaque;
  }
}

template <class T, class At, class... Seen>
consteval auto misfit_in();

template <class T, std::size_t I, class... Seen>
consteval auto misfit_from_field() {
  if constexpr (I == field_count<T>) {
    return Misfit<Unfit::no>{};
  } else {
    using At = otp::internal::Field<T, otp::internal::field_address<T, I>()>;
    constexpr auto found = misfit_in<field_type<T, I>, At, T, Seen...>();
    if constexpr (found.why != Unfit::no) {
      return found;
    } else {
      return misfit_from_field<T, I + 1, Seen...>();
    }
  }
}

template <class T, class At, class... Seen>
consteval auto misfit_in() {
  if constexpr ((std::is_same_v<T, Seen> || ...) || kIsScalar<T>) {
    return Misfit<Unfit::no>{};
  } else if constexpr (kIsRequired<T>) {
    return misfit_in<typename T::Value, At, Seen...>();
  } else if constexpr (kIsVector<T> && std::is_same_v<T, std::vector<bool>>) {
    return Misfit<Unfit::vector_of_bool, At>{};
  } else if constexpr (kIsOptional<T> || kIsVector<T>) {
    return misfit_in<typename T::value_type, At, Seen...>();
  } else if constexpr (kIsMap<T>) {
    return misfit_in<typename T::mapped_type, At, Seen...>();
  } else if constexpr (std::is_array_v<T>) {
    return Misfit<Unfit::c_array, At>{};
  } else if constexpr (unfit_of(otp::internal::kPlainness<T>) != Unfit::no) {
    return Misfit<unfit_of(otp::internal::kPlainness<T>), At>{};
  } else {
    return misfit_from_field<T, 0, Seen...>();
  }
}

template <class T>
using FirstMisfit = decltype(misfit_in<T, WholeStruct>());

template <class T>
inline constexpr bool kIsConfigurable = FirstMisfit<T>::why == Unfit::no;

/// Names the misfit in the first line of the diagnostic.
template <class T, class Where>
inline constexpr bool can_be_configured = false;

/// Stops the build, with the field and the reason, unless a configuration can fill a T.
template <class T>
consteval void require_configurable() {
  using Where = typename FirstMisfit<T>::Where;
  constexpr Unfit why = FirstMisfit<T>::why;
  static_assert(can_be_configured<T, Where> || why != Unfit::c_array,
                "a C array cannot be configured: use a std::vector");
  static_assert(can_be_configured<T, Where> || why != Unfit::vector_of_bool,
                "a std::vector<bool> cannot be configured: use a std::map<std::string, bool>");
  static_assert(can_be_configured<T, Where> || why != Unfit::base,
                "a struct with a base class has no list of fields: make the base a field");
  static_assert(can_be_configured<T, Where> || why != Unfit::reference,
                "a struct with a reference member cannot be configured: hold the value");
  static_assert(can_be_configured<T, Where> || why != Unfit::too_many,
                "a plain struct has at most 32 fields: group some of them in a struct");
  static_assert(can_be_configured<T, Where> || why != Unfit::opaque,
                "this type cannot be written in a configuration: use a plain struct or a type of "
                "the table in otp/config/describe.h, or specialise otp::ConfigText for it");
}

}  // namespace config::internal
}  // namespace otp
