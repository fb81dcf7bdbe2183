#pragma once

/// Printing any value of a message or a state, within limits: for reports and for get_state.
///
///   otp::BoundedWriter out(4096);
///   otp::format_value(out, deposit);      // Deposit{account: "a-17", cents: 500, pin: ***}
///
/// Plain structs are printed field by field, containers up to a number of elements, long strings up
/// to a number of bytes; an otp::Secret is never printed. Nothing is formatted that would not fit,
/// so a state of 200 MB costs no more than one of 2 KB.
///
/// A class with private fields is printed by its own `void format(otp::BoundedWriter&) const` or
/// `to_string() const` (which is not bounded: keep it short), else only its name is.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "otp/base/bounded_writer.h"
#include "otp/base/enum_names.h"
#include "otp/base/exit_reason.h"
#include "otp/base/reflect.h"
#include "otp/base/secret.h"
#include "otp/base/term.h"

namespace otp {

template <class T>
void format_value(BoundedWriter& out, const T& value);

namespace internal {

template <class T>
concept FormatsItself = requires(const T& value, BoundedWriter& out) { value.format(out); };

template <class T>
concept HasToString = requires(const T& value) {
  { value.to_string() } -> std::convertible_to<std::string_view>;
};

template <class T>
concept FormatRange = requires(const T& value) {
  value.begin() != value.end();
  *value.begin();
};

template <class T>
concept FormatMap = FormatRange<T> && requires { typename T::mapped_type; };

template <class T>
concept Owner = requires(const T& value) {
  static_cast<bool>(value);
  *value;
} && !std::is_pointer_v<T>;

template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

template <class T>
inline constexpr bool kIsDuration = false;
template <class R, class P>
inline constexpr bool kIsDuration<std::chrono::duration<R, P>> = true;

template <class T>
inline constexpr bool kIsTimePoint = false;
template <class C, class D>
inline constexpr bool kIsTimePoint<std::chrono::time_point<C, D>> = true;

template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; } && !FormatRange<T>;

/// Separates the elements of one container and says when to stop.
class Elements {
 public:
  explicit Elements(BoundedWriter& out) : out_(out), nested_(out) {}
  /// False when no further element is to be printed.
  bool next() {
    if (out_.full()) return false;
    if (count_ > 0) out_.write(", ");
    if (nested_.too_deep() || count_ == out_.limits().elements_max) {
      out_.write("...");
      return false;
    }
    ++count_;
    return true;
  }

 private:
  BoundedWriter& out_;
  BoundedWriter::Nested nested_;
  size_t count_ = 0;
};

template <class T>
void format_range(BoundedWriter& out, const T& range) {
  out.write(FormatMap<T> ? '{' : '[');
  {
    Elements elements(out);
    for (const auto& element : range) {
      if (!elements.next()) break;
      if constexpr (FormatMap<T>) {
        format_value(out, element.first);
        out.write(": ");
        format_value(out, element.second);
      } else {
        format_value(out, element);
      }
    }
  }
  out.write(FormatMap<T> ? '}' : ']');
  if constexpr (requires { range.size(); }) {
    if (range.size() > out.limits().elements_max) {
      out.write(" (").number(static_cast<size_t>(range.size())).write(" elements)");
    }
  }
}

template <class T>
void format_struct(BoundedWriter& out, const T& value) {
  out.write(type_name<T>()).write('{');
  if constexpr (field_count<T> > 0) {
    Elements elements(out);
    bool going_on = true;
    for_each_field(value, [&](std::string_view name, const auto& field) {
      going_on = going_on && elements.next();
      if (!going_on) return;
      out.write(name).write(": ");
      format_value(out, field);
    });
  }
  out.write('}');
}

template <class T>
void format_tuple(BoundedWriter& out, const T& value) {
  out.write('{');
  std::apply(
      [&](const auto&... part) {
        Elements elements(out);
        bool going_on = true;
        const auto one = [&](const auto& item) {
          going_on = going_on && elements.next();
          if (going_on) format_value(out, item);
        };
        (one(part), ...);
      },
      value);
  out.write('}');
}

template <class E>
void format_enum(BoundedWriter& out, E value) {
  if constexpr (count_enumerators<E>() > 0) {
    if (const std::string_view name = enum_name(value); !name.empty()) {
      out.write(name);
      return;
    }
  }
  out.number(static_cast<std::underlying_type_t<E>>(value));
}

template <class R, class P>
void format_duration(BoundedWriter& out, std::chrono::duration<R, P> value) {
  out.number(std::chrono::duration<double>(value).count()).write('s');
}

template <class T>
void format_scalar(BoundedWriter& out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    out.write(value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, char>) {
    out.quoted(std::string_view(&value, 1));
  } else if constexpr (std::is_arithmetic_v<T> && sizeof(T) <= 8) {
    if constexpr (std::is_integral_v<T>) {
      out.number(static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value));
    } else {
      out.number(value);
    }
  } else if constexpr (std::is_arithmetic_v<T>) {
    out.number(static_cast<double>(value));
  } else if constexpr (std::is_enum_v<T>) {
    format_enum(out, value);
  } else {
    out.write(value == nullptr ? "null" : "pointer");
  }
}

template <class T>
void format_class(BoundedWriter& out, const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out.quoted(static_cast<std::string_view>(value));
  } else if constexpr (std::is_same_v<T, Term>) {
    out.term(value);
  } else if constexpr (std::is_same_v<T, ExitReason>) {
    out.term(value.term());
  } else if constexpr (kIsDuration<T>) {
    format_duration(out, value);
  } else if constexpr (kIsTimePoint<T>) {
    format_duration(out, value.time_since_epoch());
  } else if constexpr (FormatsItself<T>) {
    value.format(out);
  } else if constexpr (HasToString<T>) {
    out.write(value.to_string());
  } else if constexpr (kIsVariant<T>) {
    if (value.valueless_by_exception()) {
      out.write("valueless");
    } else {
      std::visit([&](const auto& held) { format_value(out, held); }, value);
    }
  } else if constexpr (FormatRange<T>) {
    format_range(out, value);
  } else if constexpr (TupleLike<T>) {
    format_tuple(out, value);
  } else if constexpr (Owner<T>) {
    value ? format_value(out, *value) : static_cast<void>(out.write("null"));
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    out.write("none");
  } else if constexpr (Reflectable<T>) {
    format_struct(out, value);
  } else {
    out.write(type_name<T>());  // nobody can look inside
  }
}

}  // namespace internal

/// Prints `value` into `out`, as far as it fits.
template <class T>
void format_value(BoundedWriter& out, const T& value) {
  if (out.full()) return;
  if constexpr (std::is_array_v<T> &&
                std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>) {
    out.quoted(std::string_view(value));
  } else if constexpr (std::is_array_v<T>) {
    out.write("array");
  } else if constexpr (std::is_same_v<T, const char*> || std::is_same_v<T, char*>) {
    value == nullptr ? out.write("null") : out.quoted(value);
  } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
    internal::format_class(out, value);
  } else {
    internal::format_scalar(out, value);
  }
}

/// Prints what is left of a value that was moved to somebody else: fields that are only ever copied
/// have their values still, the others are said to be taken.
template <class T>
void format_taken(BoundedWriter& out, const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    format_value(out, value);
  } else if constexpr (Reflectable<T>) {
    out.write(type_name<T>()).write('{');
    if constexpr (field_count<T> > 0) {
      internal::Elements elements(out);
      bool going_on = true;
      for_each_field(value, [&](std::string_view name, const auto& field) {
        going_on = going_on && elements.next();
        if (!going_on) return;
        out.write(name).write(": ");
        format_taken(out, field);
      });
    }
    out.write('}');
  } else {
    out.write("(taken)");
  }
}

}  // namespace otp
