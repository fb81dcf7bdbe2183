#pragma once

#include <optional>
#include <string>
#include <utility>

namespace otp::release {

/// A value, or one line for the operator that says why there is none and names the path concerned.
template <class T>
struct [[nodiscard]] Outcome {
  Outcome(T result) : value(std::move(result)) {}

  static Outcome failure(std::string reason) {
    Outcome outcome;
    outcome.error = std::move(reason);
    return outcome;
  }

  bool ok() const { return value.has_value(); }

  std::optional<T> value;
  std::string error;

 private:
  Outcome() = default;
};

}  // namespace otp::release
