#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "otp/config/position.h"

namespace otp::config {

/// One mistake in a configuration: where it is, what was expected and what was found.
struct Diagnostic {
  Position at;
  std::string text;  ///< `expected …, got …`, perhaps with `; did you mean …?`

  /// `jobs.yaml:3:7: expected …, got …`
  std::string to_string(const std::string& file) const { return at.to_string(file) + ": " + text; }
};

/// All mistakes found so far: a reader of configurations goes on after a mistake, so that its user
/// sees them together.
class Diagnostics {
 public:
  /// More are counted, not kept.
  static constexpr std::size_t kKeptMax = 200;

  void expected(const Position& at, std::string_view expected, std::string_view got,
                std::string_view hint = {});
  void add(Diagnostic diagnostic);
  bool empty() const { return kept_.empty(); }
  std::size_t size() const { return kept_.size() + dropped_; }

  /// The mistakes in the order of the file, each once.
  std::vector<Diagnostic> sorted() const;

 private:
  std::vector<Diagnostic> kept_;
  std::size_t dropped_ = 0;
};

/// `; did you mean one_for_all?` for the word nearest to `got`, or nothing when none is near.
///
/// Near: at most a third of the letters differ, and case does not count.
std::string did_you_mean(std::string_view got, const std::vector<std::string_view>& words);

/// `text` as an error shows it: as it is when it is a plain word, else in double quotes with
/// escapes, cut after 60 bytes.
std::string shown(std::string_view text);

/// `a, b or c`, or `a, b, c and 4 more` when there are more than `most`.
std::string listed(const std::vector<std::string_view>& words, std::size_t most = 16);

}  // namespace otp::config
