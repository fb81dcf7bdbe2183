// Reflection of plain structs: the names, the number and the types of their fields, without a macro
// or a registration.
//
//   struct Deposit { std::string account; int64_t cents = 0; };
//
//   otp::field_count<Deposit>                       // 2
//   otp::field_names<Deposit>[1]                    // "cents"
//   otp::for_each_field(deposit, [](std::string_view name, auto& field) { ... });
//   otp::type_name<bank::Deposit>()                 // "Deposit"
//
// A plain struct is an aggregate of at most 32 fields, without base classes, reference members and
// C arrays. Its fields may be move-only or refer to the struct itself (std::vector<Self>). A struct
// that breaks one of these rules stops the build with the rule and, where one is at fault, the
// field. Not for classes with private fields: they are somebody's invariant.

#pragma once

#include "otp/base/compiler.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "otp/base/internal/bind_fields.h"

// `unbuilt` below is declared and never defined on purpose: only the addresses of its fields are
// taken, and only while compiling.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif

namespace otp {

namespace internal {

// ---- Counting: a struct has as many fields as it takes initialisers that convert to anything.

/// Converts to the type of any field of T, move-only ones included, but not to T itself.
template <class T>
struct AnyField {
  template <class U>
    requires(!std::is_same_v<U, T>)
  operator U() const noexcept;
};

/// The same for lvalue references, which AnyField cannot make.
template <class T>
struct AnyReferable {
  template <class U>
    requires(!std::is_same_v<std::remove_cv_t<U>, T>)
  operator U&() const noexcept;
};

/// Converts to a base class of T only.
template <class T>
struct AnyBase {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const noexcept;
};

template <class A, std::size_t>
using Repeat = A;

template <class T, class A, std::size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{Repeat<A, I>{}...}; };
}

/// T{a x Before, {a x Inside}, a x After} is valid, where `a` converts to anything.
template <class T, std::size_t... B, std::size_t... I, std::size_t... A>
consteval bool takes_braced(std::index_sequence<B...>, std::index_sequence<I...>,
                            std::index_sequence<A...>) {
  using Any = AnyField<T>;
  return requires { T{Repeat<Any, B>{}..., {Repeat<Any, I>{}...}, Repeat<Any, A>{}...}; };
}

template <class T, std::size_t Before, std::size_t Inside, std::size_t After>
inline constexpr bool kTakesBraced =
    takes_braced<T>(std::make_index_sequence<Before>{}, std::make_index_sequence<Inside>{},
                    std::make_index_sequence<After>{});

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);
inline constexpr std::size_t kInitialisersMax = 2 * kFieldsMax;

/// The largest number of initialisers of kind A that T takes: the elements of an array count
/// singly. Fields without a default make the smaller numbers invalid, so the search climbs to the
/// first valid number and then to the last.
template <class T, class A, std::size_t N = 0, bool Found = false>
consteval std::size_t initialiser_count() {
  if constexpr (N > kInitialisersMax) {
    return Found ? N - 1 : kNone;
  } else {
    constexpr bool valid = takes<T, A>(std::make_index_sequence<N>{});
    if constexpr (Found && !valid) {
      return N - 1;
    } else {
      return initialiser_count<T, A, N + 1, valid>();
    }
  }
}

/// The number of initialisers that the field at initialiser `At` swallows: 1, or an array's length.
template <class T, std::size_t At, std::size_t Total, std::size_t Inside = 0>
consteval std::size_t initialisers_of_field() {
  constexpr std::size_t kTried = 6;  // braces with up to so many values are tried for a class
  if constexpr (Inside < kTried && At + 1 <= Total) {
    if constexpr (kTakesBraced<T, At, Inside, Total - At - 1>) {
      return 1;
    } else {
      return initialisers_of_field<T, At, Total, Inside + 1>();
    }
  } else {
    return []<std::size_t... K>(std::index_sequence<K...>) {
      std::size_t length = 1;
      ((length = kTakesBraced<T, At, K + 2, Total - At - K - 2> ? K + 2 : length), ...);
      return length;
    }(std::make_index_sequence<(Total > At + 1 ? Total - At - 1 : 0)>{});
  }
}

template <class T, std::size_t Total, std::size_t At = 0>
consteval std::size_t count_from() {
  if constexpr (At >= Total) {
    return 0;
  } else {
    return 1 + count_from<T, Total, At + initialisers_of_field<T, At, Total>()>();
  }
}

template <class T, class A = AnyField<T>>
consteval std::size_t raw_field_count() {
  constexpr std::size_t total = initialiser_count<T, A>();
  if constexpr (total == kNone || total > kInitialisersMax) {
    return total;
  } else {
    return count_from<T, total>();
  }
}

/// The number of fields, unless T has a field that no AnyField initialises or far too many fields.
template <class T>
inline constexpr std::size_t kRawFieldCount = raw_field_count<T>();

// ---- Types and names.

template <class... F>
struct TypeList {
  static constexpr std::size_t size = sizeof...(F);
};

template <std::size_t I, class List>
struct TypeAt;
template <std::size_t I, class First, class... Rest>
struct TypeAt<I, TypeList<First, Rest...>> : TypeAt<I - 1, TypeList<Rest...>> {};
template <class First, class... Rest>
struct TypeAt<0, TypeList<First, Rest...>> {
  using type = First;
};

struct ListTypes {
  template <class... F>
  constexpr TypeList<F...> operator()(F&...) const {
    return {};
  }
};

template <class T>
struct Unbuilt {
  T value;
};
template <class T>
extern const Unbuilt<T> unbuilt;

template <class T>
using FieldTypes =
    decltype(bind_fields<kRawFieldCount<T>>(std::declval<std::remove_cv_t<T>&>(), ListTypes{}));

/// The address of field I of the never built T: as a template argument it spells the field's name.
template <class T, std::size_t I>
consteval auto field_address() {
  return bind_fields<kRawFieldCount<T>>(unbuilt<T>.value, [](auto&... field) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return [](Repeat<const volatile void*, K>..., auto* at, auto*...) { return at; }(&field...);
    }(std::make_index_sequence<I>{});
  });
}

template <auto Address>
consteval std::string_view spelled_field() {
  return __PRETTY_FUNCTION__;
}

template <class T>
consteval std::string_view spelled_type() {
  return __PRETTY_FUNCTION__;
}

constexpr bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

/// The last identifier in `text`.
constexpr std::string_view last_identifier(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !is_identifier_char(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_identifier_char(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

/// `text` without the namespaces and classes around it; template arguments stay as they are.
constexpr std::string_view without_qualifiers(std::string_view text) {
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '<') break;
    if (depth == 0 && c == ':' && i + 1 < text.size() && text[i + 1] == ':') begin = i + 2;
  }
  return text.substr(begin);
}

constexpr std::string_view type_of_spelling(std::string_view spelling) {
  const std::size_t begin = spelling.find("T = ") + 4;
  const std::size_t stop = spelling.find(';', begin);
  const std::size_t end = stop == std::string_view::npos ? spelling.rfind(']') : stop;
  return spelling.substr(begin, end - begin);
}

// ---- The rules.

/// The address of a reference member's object is not known while compiling, that of a field is.
template <class T, std::size_t I>
concept IsObject = requires { typename std::bool_constant<(field_address<T, I>(), true)>; };

template <class T>
consteval bool all_objects() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return (IsObject<T, I> && ...);
  }(std::make_index_sequence<kRawFieldCount<T>>{});
}

enum class Plain { yes, not_aggregate, has_base, has_reference, too_many, unknown };

template <class T>
consteval Plain plainness() {
  if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T> || std::is_union_v<T>) {
    return Plain::not_aggregate;
  } else if constexpr (requires { T{AnyBase<T>{}}; }) {
    return Plain::has_base;
  } else if constexpr (kRawFieldCount<T> == kNone) {
    return initialiser_count<T, AnyReferable<T>>() == kNone ? Plain::unknown : Plain::has_reference;
  } else if constexpr (kRawFieldCount<T> > kFieldsMax) {
    return Plain::too_many;
  } else {
    return all_objects<T>() ? Plain::yes : Plain::has_reference;
  }
}

template <class T>
inline constexpr Plain kPlainness = plainness<std::remove_cv_t<T>>();

template <class T>
consteval std::size_t checked_field_count() {
  constexpr Plain plain = kPlainness<T>;
  static_assert(plain != Plain::not_aggregate,
                "a plain struct is wanted: no constructors, no private or virtual members");
  static_assert(plain != Plain::has_base,
                "a struct with a base class has no list of fields: make the base a field");
  static_assert(plain != Plain::has_reference,
                "a struct with a reference member has no list of fields: hold the value");
  static_assert(plain != Plain::too_many,
                "a plain struct has at most 32 fields: group some of them in a struct");
  static_assert(plain != Plain::unknown,
                "the fields of this struct cannot be counted: one of them cannot be initialised");
  return plain == Plain::yes ? kRawFieldCount<T> : 0;
}

}  // namespace internal

/// A struct whose fields can be listed.
template <class T>
concept Reflectable = internal::kPlainness<T> == internal::Plain::yes;

/// The number of fields of the plain struct T.
template <class T>
inline constexpr std::size_t field_count = internal::checked_field_count<std::remove_cv_t<T>>();

namespace internal {

/// In a diagnostic: the field that `Address` spells, of the struct `Owner`.
template <class Owner, auto Address>
struct Field {};

template <class T>
consteval auto field_name_list() {
  using U = std::remove_cv_t<T>;
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{
        last_identifier(spelled_field<field_address<U, I>()>())...};
  }(std::make_index_sequence<field_count<U>>{});
}

}  // namespace internal

/// The names of the fields of the plain struct T, in the order of their declaration.
template <class T>
inline constexpr std::array<std::string_view, field_count<T>> field_names =
    internal::field_name_list<T>();

/// The declared type of field I of the plain struct T.
template <class T, std::size_t I>
using field_type = typename internal::TypeAt<I, internal::FieldTypes<T>>::type;

/// Calls `fn(name, field)` for each field of `object`, in the order of their declaration.
///
/// Takes: fn(std::string_view, F&), where F is const when `object` is.
template <class T, class Fn>
constexpr void for_each_field(T& object, Fn&& fn) {
  internal::bind_fields<field_count<T>>(object, [&](auto&... field) {
    [[maybe_unused]] std::size_t i = 0;
    (static_cast<void>(fn(field_names<T>[i++], field)), ...);
  });
}

/// The name of T with its namespaces, as `bank::Ledger`. It has static storage, does not depend on
/// addresses or std::type_info, and is the same in every program that this compiler built.
template <class T>
consteval std::string_view qualified_type_name() {
  return internal::type_of_spelling(internal::spelled_type<T>());
}

/// The name of T alone, as `Ledger`: what a configuration file calls a server.
template <class T>
consteval std::string_view type_name() {
  return internal::without_qualifiers(qualified_type_name<T>());
}

namespace internal {

// ---- Hashing: FNV-1a over a spelling of the type that does not depend on the machine.

struct Fnv {
  std::uint64_t value = 0xcbf29ce484222325;

  constexpr void add(std::string_view text) {
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    value = (value ^ 0xff) * 0x100000001b3;  // ends the text: "ab","c" is not "a","bc"
  }
};

/// What a standard container adds by default and says nothing of its contents.
constexpr bool is_default_argument(std::string_view name) {
  for (const std::string_view start : {"std::allocator<", "std::char_traits<", "std::less<",
                                       "std::hash<", "std::equal_to<", "std::default_delete<"}) {
    if (name.substr(0, start.size()) == start) return true;
  }
  return false;
}

template <class T, class... Seen>
constexpr void hash_type(Fnv& hash);

template <class T>
struct TemplateArguments {
  static constexpr bool known = false;
};
template <template <class...> class C, class... A>
struct TemplateArguments<C<A...>> {
  static constexpr bool known = true;
  template <class... Seen>
  static constexpr void hash(Fnv& hash) {
    (hash_argument<A, Seen...>(hash), ...);
  }
  template <class B, class... Seen>
  static constexpr void hash_argument(Fnv& hash) {
    if constexpr (!is_default_argument(qualified_type_name<B>())) hash_type<B, Seen...>(hash);
  }
};

template <class T, class... Seen>
constexpr void hash_fields(Fnv& hash) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((hash.add(field_names<T>[I]), hash_type<field_type<T, I>, T, Seen...>(hash)), ...);
  }(std::make_index_sequence<field_count<T>>{});
}

template <class T, class... Seen>
constexpr void hash_type(Fnv& hash) {
  using U = std::remove_cv_t<T>;
  constexpr std::string_view name = qualified_type_name<U>();
  if constexpr (std::is_same_v<U, bool> || std::is_same_v<U, char>) {
    hash.add(name);
  } else if constexpr (std::is_arithmetic_v<U>) {  // long and long long: the same number
    hash.add(std::is_floating_point_v<U> ? "float" : std::is_signed_v<U> ? "int" : "uint");
    const char bytes = static_cast<char>('0' + sizeof(U));
    hash.add({&bytes, 1});
  } else if constexpr (TemplateArguments<U>::known) {
    hash.add(name.substr(0, name.find('<')));
    TemplateArguments<U>::template hash<Seen...>(hash);
    if constexpr (Reflectable<U> && !(std::is_same_v<U, Seen> || ...))
      hash_fields<U, Seen...>(hash);
  } else if constexpr (name.substr(0, 11) == "std::array<") {
    hash.add(name.substr(name.rfind(',')));
    hash_type<typename U::value_type, Seen...>(hash);
  } else {
    hash.add(name);
    if constexpr (Reflectable<U> && !(std::is_same_v<U, Seen> || ...))
      hash_fields<U, Seen...>(hash);
  }
}

template <class T>
consteval std::uint64_t hash_of_type() {
  Fnv hash;
  hash_type<T>(hash);
  return hash.value;
}

}  // namespace internal

/// A number for T's qualified name and, if T is a plain struct, the names and the types of its
/// fields, and of theirs. It is the same in every program and every run; it changes when a field is
/// added, removed, renamed, moved or given another type.
template <class T>
inline constexpr std::uint64_t stable_hash = internal::hash_of_type<std::remove_cv_t<T>>();

}  // namespace otp

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
