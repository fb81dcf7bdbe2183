#pragma once

#include <compare>
#include <memory>
#include <string>

namespace otp::config {

/// Where a text stands: a line and a column of the configuration file, counted from 1 (columns in
/// characters, not bytes), or an environment variable that replaced a value of the file.
struct Position {
  int line = 1;
  int column = 1;
  std::shared_ptr<const std::string> variable;  ///< set: the text is this variable's value

  /// `jobs.yaml:3:7`, or `environment variable JOBS__LISTEN`.
  std::string to_string(const std::string& file) const {
    if (variable != nullptr) return "environment variable " + *variable;
    return file + ":" + std::to_string(line) + ":" + std::to_string(column);
  }
};

/// In the order of the file; environment variables come last, by name.
inline bool operator<(const Position& a, const Position& b) {
  if ((a.variable != nullptr) != (b.variable != nullptr)) return b.variable != nullptr;
  if (a.variable != nullptr) return *a.variable < *b.variable;
  return a.line != b.line ? a.line < b.line : a.column < b.column;
}

}  // namespace otp::config
