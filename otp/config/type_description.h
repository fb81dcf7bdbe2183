// What a configuration expects of a value, without its C++ type: one decoder, one schema writer and
// one check serve all types. describe.h makes a description from a type.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace otp::config {

struct TypeDescription;
/// Descriptions refer to each other through functions, so that a type may contain itself.
using Describe = const TypeDescription& (*)();

enum class TypeKind : uint8_t {
  boolean,
  integer,
  number,
  character,
  string,
  secret,
  duration,
  bytes,
  word,       ///< one of an enumeration's words
  text,       ///< a class of the user's that is written as a text: otp::ConfigText
  reference,  ///< the name of a child: otp::ConfigReference
  optional,
  list,
  map,
  record  ///< a plain struct
};

/// A scalar that was read and found good, on its way into its field.
struct ScalarValue {
  bool boolean = false;
  bool negative = false;
  uint64_t magnitude = 0;  ///< integers and sizes
  double number = 0;
  int64_t nanoseconds = 0;  ///< durations
  bool infinite = false;    ///< the duration is infinity
  std::size_t word = 0;     ///< index into TypeDescription::words
  bool is_word = false;     ///< of a duration that may be a word too
  std::string_view text;
};

/// What a plain struct says of its own values: which field is wrong, and what was expected instead.
struct Problem {
  std::string_view field;
  std::string expected;
};

struct FieldDescription {
  std::string_view name;
  bool required = false;
  Describe type = nullptr;
  void* (*locate)(void* record) = nullptr;  ///< the field's place; a required one counts as given
};

struct TypeDescription {
  TypeKind kind = TypeKind::string;
  std::string name;  ///< of a record: the struct's

  int64_t min = 0;   ///< of an integer
  uint64_t max = 0;  ///< of an integer
  double number_max = 0;
  int64_t tick_ns = 1;  ///< a duration is a whole number of these
  int64_t duration_max_ns = 0;
  bool allows_infinity = false;
  std::vector<std::string_view> words;
  std::string_view expected;  ///< of a text
  std::string_view server;    ///< of a reference: the qualified name of the server type

  Describe element = nullptr;            ///< of an optional, a list, a map
  std::vector<FieldDescription> fields;  ///< of a record

  /// Writes a scalar into its place. False: a `text` that its class refuses.
  bool (*store)(void* place, const ScalarValue& value) = nullptr;
  void (*clear)(void* container) = nullptr;
  void* (*append)(void* list) = nullptr;  ///< the new element's place
  void* (*insert)(void* map, const std::string& key) = nullptr;
  void* (*emplace)(void* optional) = nullptr;
  std::optional<Problem> (*problem)(const void* record) = nullptr;
};

/// A struct's description together with how to make one: enough to decode it into a heap object.
struct RecordType {
  Describe describe = nullptr;
  std::shared_ptr<void> (*make)() = nullptr;
};

}  // namespace otp::config
