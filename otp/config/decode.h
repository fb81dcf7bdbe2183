#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/config/describe.h"
#include "otp/config/diagnostic.h"
#include "otp/config/environment.h"
#include "otp/config/node.h"
#include "otp/config/parser.h"

namespace otp::config {

/// How messages call the keys of a mapping: `an argument of Ledger`.
struct KeyWords {
  std::string_view article = "a";
  std::string_view noun = "key";
  std::string_view whole = {};  ///< what the mapping describes, if that is worth saying

  std::string of() const { return whole.empty() ? "" : " of " + std::string(whole); }
};

/// Fills C++ objects from nodes and reports whatever does not fit.
class Decoder {
 public:
  /// Finds the registered name of the child that a node refers to, which must run the server type
  /// of that qualified name; reports it when there is none.
  using Resolve = std::function<std::optional<std::string>(const Node&, std::string_view server)>;

  explicit Decoder(Diagnostics& diagnostics, Resolve resolve = {})
      : diagnostics_(diagnostics), resolve_(std::move(resolve)) {}

  /// Writes `node` into `place`, which is of the described type. After a mistake the place holds
  /// whatever it held, or a part.
  void decode(const Node& node, const TypeDescription& type, void* place);

  /// Writes a mapping into a struct, by the names of its fields.
  ///
  /// Takes: others: keys that the caller reads itself.
  void decode_record(const Node& node, const TypeDescription& type, void* place,
                     const KeyWords& words = {}, const std::vector<std::string_view>& others = {});

 private:
  void decode_scalar(const Node& node, const TypeDescription& type, void* place);
  void decode_list(const Node& node, const TypeDescription& type, void* place);
  void decode_map(const Node& node, const TypeDescription& type, void* place);
  void decode_optional(const Node& node, const TypeDescription& type, void* place);
  void check_keys(const Node& node, const TypeDescription& type, const KeyWords& words,
                  const std::vector<std::string_view>& others);
  void check_problem(const Node& node, const TypeDescription& type, const void* place);

  Diagnostics& diagnostics_;
  Resolve resolve_;
};

/// What a message says is expected of a value: `an integer from 0 to 255`.
std::string expectation(const TypeDescription& type);

/// A value, or the mistakes that kept it from being read, in the order of the text.
template <class T>
struct Decoded {
  std::optional<T> value;
  std::vector<Diagnostic> diagnostics;
};

/// Reads one plain struct from YAML text: for files that describe no supervision tree.
///
/// Takes: environment for placeholders; empty when the text may not see the environment.
template <class T>
Decoded<T> decode_text(std::string_view yaml, const Environment& environment = {}) {
  internal::require_configurable<T>();
  Decoded<T> result;
  Parsed parsed = parse(yaml, &environment);
  if (parsed.root != nullptr) {
    T value = internal::blank<T>();
    Decoder(parsed.diagnostics).decode(*parsed.root, describe<T>(), &value);
    if (parsed.diagnostics.empty()) result.value = std::move(value);
  }
  result.diagnostics = parsed.diagnostics.sorted();
  return result;
}

}  // namespace otp::config
