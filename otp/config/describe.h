// describe<T>(): what a configuration expects of a T, found by reflection.
//
// | C++ type                                | is written as                                       |
// | --- | --- |
// | bool                                    | true, false                                         |
// | (u)int8_t ... (u)int64_t                | a decimal number that fits                          |
// | float, double                           | a decimal number                                    |
// | char                                    | one character                                       |
// | std::string                             | the text as it stands: `no`, `012`, `null` are texts|
// | otp::Secret                             | a text that no message shows                        |
// | std::chrono::duration, otp::Timeout     | 250ms, 5s, 1.5h; a Timeout also infinity            |
// | otp::Shutdown                           | a duration, infinity, brutal_kill                   |
// | otp::Bytes                              | 512B, 64KiB, 10MiB                                  |
// | an enumeration                          | one of its enumerators' names                       |
// | std::optional<T>                        | a T; nothing or `~` for none                        |
// | std::vector<T>, std::map<std::string,T> | a list, a mapping                                   |
// | a plain struct                          | a mapping with the fields' names as keys            |
// | otp::Required<T>, as a field            | a T that must be given                              |
// | a type with otp::ConfigText             | a text of its own form                              |
// | otp::Name<S>, otp::ConfigReference      | the name or the id of a child that runs S           |
//
// A plain struct may check its values together: with a member
// `std::optional<otp::config::Problem> problem() const`.

#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/base/bytes.h"
#include "otp/base/enum_names.h"
#include "otp/base/reflect.h"
#include "otp/base/secret.h"
#include "otp/base/timeout.h"
#include "otp/config/configurable.h"
#include "otp/config/required.h"
#include "otp/config/scalar.h"
#include "otp/config/type_description.h"
#include "otp/supervision/child_spec_types.h"

namespace otp {

namespace config {

template <class T>
const TypeDescription& describe();

namespace internal {

template <class T>
concept HasProblem = requires(const T& record) {
  { record.problem() } -> std::same_as<std::optional<Problem>>;
};

/// An element to be filled in: types without a default get the value that they need least to.
template <class T>
T blank() {
  if constexpr (std::is_constructible_v<T, std::chrono::seconds> && !kIsDuration<T> &&
                !std::is_default_constructible_v<T>) {
    return T(std::chrono::seconds(0));
  } else {
    return T{};
  }
}

template <class T>
TypeDescription describe_integer() {
  TypeDescription type;
  type.kind = TypeKind::integer;
  type.min = std::is_signed_v<T> ? static_cast<int64_t>(std::numeric_limits<T>::min()) : 0;
  type.max = static_cast<uint64_t>(std::numeric_limits<T>::max());
  type.store = [](void* place, const ScalarValue& value) {
    const uint64_t bits = value.negative ? 0 - value.magnitude : value.magnitude;
    *static_cast<T*>(place) = static_cast<T>(bits);
    return true;
  };
  return type;
}

template <class T>
TypeDescription describe_number() {
  TypeDescription type;
  type.kind = TypeKind::number;
  type.number_max = static_cast<double>(std::numeric_limits<T>::max());
  type.store = [](void* place, const ScalarValue& value) {
    *static_cast<T*>(place) = static_cast<T>(value.number);
    return true;
  };
  return type;
}

template <class T>
TypeDescription describe_duration() {
  using Rep = typename T::rep;
  using Ratio = std::ratio_divide<typename T::period, std::nano>;
  TypeDescription type;
  type.kind = TypeKind::duration;
  type.duration_max_ns = kDurationMaxNs;
  if constexpr (!std::chrono::treat_as_floating_point_v<Rep>) {
    static_assert(Ratio::den == 1, "a duration finer than a nanosecond cannot be configured");
    type.tick_ns = Ratio::num;
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<Rep>::max());
    if constexpr (most < static_cast<uint64_t>(kDurationMaxNs / Ratio::num)) {
      type.duration_max_ns = static_cast<int64_t>(most) * Ratio::num;
    }
  }
  type.store = [](void* place, const ScalarValue& value) {
    *static_cast<T*>(place) =
        std::chrono::duration_cast<T>(std::chrono::nanoseconds(value.nanoseconds));
    return true;
  };
  return type;
}

/// Timeout and Shutdown: a duration or infinity, and for a Shutdown brutal_kill.
template <class T>
TypeDescription describe_timeout() {
  TypeDescription type;
  type.kind = TypeKind::duration;
  type.duration_max_ns = kDurationMaxNs;
  type.allows_infinity = true;
  if constexpr (std::is_same_v<T, Shutdown>) type.words = {"brutal_kill"};
  type.store = [](void* place, const ScalarValue& value) {
    T& timeout = *static_cast<T*>(place);
    if constexpr (std::is_same_v<T, Shutdown>) {
      if (value.is_word) {
        timeout = Shutdown::brutal_kill;
        return true;
      }
    }
    timeout = value.infinite ? T(infinity) : T(std::chrono::nanoseconds(value.nanoseconds));
    return true;
  };
  return type;
}

template <class T>
TypeDescription describe_words() {
  TypeDescription type;
  type.kind = TypeKind::word;
  for (const auto& named : enum_names<T>) type.words.push_back(named.name);
  type.store = [](void* place, const ScalarValue& value) {
    *static_cast<T*>(place) = enum_names<T>[value.word].value;
    return true;
  };
  return type;
}

template <class T>
TypeDescription describe_text() {
  TypeDescription type;
  type.kind = TypeKind::text;
  type.expected = ConfigText<T>::expected;
  type.store = [](void* place, const ScalarValue& value) {
    std::optional<T> parsed = ConfigText<T>::parse(value.text);
    if (parsed) *static_cast<T*>(place) = std::move(*parsed);
    return parsed.has_value();
  };
  return type;
}

template <class T>
TypeDescription describe_reference() {
  TypeDescription type;
  type.kind = TypeKind::reference;
  type.server = ConfigReference<T>::server;
  type.store = [](void* place, const ScalarValue& value) {
    *static_cast<T*>(place) = ConfigReference<T>::from_name(std::string(value.text));
    return true;
  };
  return type;
}

template <class T>
TypeDescription describe_optional() {
  using Value = typename T::value_type;
  TypeDescription type;
  type.kind = TypeKind::optional;
  type.element = &describe<Value>;
  type.clear = [](void* place) { static_cast<T*>(place)->reset(); };
  type.emplace = [](void* place) -> void* {
    return &static_cast<T*>(place)->emplace(blank<Value>());
  };
  return type;
}

template <class T>
TypeDescription describe_vector() {
  using Value = typename T::value_type;
  TypeDescription type;
  type.kind = TypeKind::list;
  type.element = &describe<Value>;
  type.clear = [](void* place) { static_cast<T*>(place)->clear(); };
  type.append = [](void* place) -> void* {
    return &static_cast<T*>(place)->emplace_back(blank<Value>());
  };
  return type;
}

template <class T>
TypeDescription describe_map() {
  using Value = typename T::mapped_type;
  TypeDescription type;
  type.kind = TypeKind::map;
  type.element = &describe<Value>;
  type.clear = [](void* place) { static_cast<T*>(place)->clear(); };
  type.insert = [](void* place, const std::string& key) -> void* {
    return &static_cast<T*>(place)->insert_or_assign(key, blank<Value>()).first->second;
  };
  return type;
}

/// Field I of the struct T, by the struct's address.
template <class T, std::size_t I>
auto& field_of(void* record) {
  return otp::internal::bind_fields<field_count<T>>(
      *static_cast<T*>(record), [](auto&... fields) -> auto& {
        void* places[] = {static_cast<void*>(&fields)...};
        return *static_cast<field_type<T, I>*>(places[I]);
      });
}

template <class T, std::size_t I>
FieldDescription describe_field() {
  using F = field_type<T, I>;
  FieldDescription field;
  field.name = field_names<T>[I];
  if constexpr (kIsRequired<F>) {
    field.required = true;
    field.type = &describe<typename F::Value>;
    field.locate = [](void* record) -> void* { return &field_of<T, I>(record).emplace(); };
  } else {
    field.type = &describe<F>;
    field.locate = [](void* record) -> void* { return &field_of<T, I>(record); };
  }
  return field;
}

template <class T>
TypeDescription describe_record() {
  TypeDescription type;
  type.kind = TypeKind::record;
  type.name = qualified_type_name<T>();
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (type.fields.push_back(describe_field<T, I>()), ...);
  }(std::make_index_sequence<field_count<T>>{});
  if constexpr (HasProblem<T>) {
    type.problem = [](const void* record) { return static_cast<const T*>(record)->problem(); };
  }
  return type;
}

template <class T>
TypeDescription describe_text_like(TypeKind kind) {
  TypeDescription type;
  type.kind = kind;
  type.store = [](void* place, const ScalarValue& value) {
    if constexpr (std::is_same_v<T, char>) {
      *static_cast<char*>(place) = value.text.front();
    } else {
      *static_cast<T*>(place) = T(std::string(value.text));
    }
    return true;
  };
  return type;
}

inline TypeDescription describe_boolean() {
  TypeDescription type;
  type.kind = TypeKind::boolean;
  type.store = [](void* place, const ScalarValue& value) {
    *static_cast<bool*>(place) = value.boolean;
    return true;
  };
  return type;
}

inline TypeDescription describe_bytes() {
  TypeDescription type;
  type.kind = TypeKind::bytes;
  type.store = [](void* place, const ScalarValue& value) {
    static_cast<Bytes*>(place)->count = value.magnitude;
    return true;
  };
  return type;
}

template <class T>
TypeDescription make_description() {
  if constexpr (HasText<T>) {
    return describe_text<T>();
  } else if constexpr (IsReference<T>) {
    return describe_reference<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return describe_boolean();
  } else if constexpr (std::is_same_v<T, char>) {
    return describe_text_like<T>(TypeKind::character);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return describe_text_like<T>(TypeKind::string);
  } else if constexpr (std::is_same_v<T, Secret>) {
    return describe_text_like<T>(TypeKind::secret);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    return describe_bytes();
  } else if constexpr (kIsInteger<T>) {
    return describe_integer<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    return describe_number<T>();
  } else if constexpr (kIsDuration<T>) {
    return describe_duration<T>();
  } else if constexpr (std::is_same_v<T, Timeout> || std::is_same_v<T, Shutdown>) {
    return describe_timeout<T>();
  } else if constexpr (std::is_enum_v<T>) {
    return describe_words<T>();
  } else if constexpr (kIsOptional<T>) {
    return describe_optional<T>();
  } else if constexpr (kIsVector<T>) {
    return describe_vector<T>();
  } else if constexpr (kIsMap<T>) {
    return describe_map<T>();
  } else {
    return describe_record<T>();
  }
}

}  // namespace internal

/// What a configuration expects of a T. One object for each type, made at its first use.
///
/// REQUIRES: what configurable.h accepts; record_type and decode_text say what it does not.
/// Threads: any.
template <class T>
const TypeDescription& describe() {
  static const TypeDescription type = internal::make_description<T>();
  return type;
}

/// The struct T's description and how to make one. A struct with a field that cannot be configured
/// stops the build with the field's name.
template <class T>
RecordType record_type() {
  internal::require_configurable<T>();
  if constexpr (internal::kIsConfigurable<T>) {
    return {&describe<T>, []() -> std::shared_ptr<void> { return std::make_shared<T>(); }};
  } else {
    return {};
  }
}

}  // namespace config
}  // namespace otp
