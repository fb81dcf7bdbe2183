#pragma once

#include <compare>
#include <memory>
#include <string>

namespace otp::config {

/// Where a text stands: a line and a column of a configuration file, counted from 1 (columns in
/// characters, not bytes), or an environment variable that replaced a value of the file.
struct Position {
  int line = 1;
  int column = 1;
  std::shared_ptr<const std::string> variable = {};  ///< set: the text is this variable's value
  std::shared_ptr<const std::string> file = {};      ///< set: an imported file

  /// `jobs.yaml:3:7`, or `environment variable JOBS__LISTEN`.
  ///
  /// Takes: main_file: the name of the file that imports the others.
  std::string to_string(const std::string& main_file) const {
    if (variable != nullptr) return "environment variable " + *variable;
    return (file == nullptr ? main_file : *file) + ":" + line_and_column();
  }
  /// `3:7`, or `prod.yaml:3:7` in an imported file.
  std::string short_text() const {
    if (variable != nullptr) return *variable;
    return (file == nullptr ? "" : *file + ":") + line_and_column();
  }
  std::string line_and_column() const {
    return std::to_string(line) + ":" + std::to_string(column);
  }
};

/// In the order of the file; then imported files, and last environment variables, by name.
inline bool operator<(const Position& a, const Position& b) {
  if ((a.variable != nullptr) != (b.variable != nullptr)) return b.variable != nullptr;
  if (a.variable != nullptr) return *a.variable < *b.variable;
  if ((a.file != nullptr) != (b.file != nullptr)) return b.file != nullptr;
  if (a.file != nullptr && *a.file != *b.file) return *a.file < *b.file;
  return a.line != b.line ? a.line < b.line : a.column < b.column;
}

}  // namespace otp::config
