#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/config/diagnostic.h"

namespace otp::config {

/// A configuration's text, checked and ready to be parsed: UTF-8 without a byte order mark, lines
/// ended by \n, no control characters.
///
/// The check comes first since yaml-cpp 0.7 ends at a NUL or a Ctrl-D and lets any bytes through.
class Source {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{16} << 20;

  /// Takes any bytes. Lines may end with \n, \r\n or \r, mixed too.
  /// file: the name of an imported file, for its positions.
  explicit Source(std::string_view bytes, std::shared_ptr<const std::string> file = nullptr);

  /// The first thing that is wrong with the bytes; text() is not to be used then.
  const std::optional<Diagnostic>& mistake() const { return mistake_; }
  const std::string& text() const { return text_; }

  /// The offset of a place that yaml-cpp marked by line and byte column, both from 0. Places
  /// outside of the text become its end.
  std::size_t offset(int line, int column) const;
  /// The position, in characters and from 1, of an offset.
  Position position(std::size_t offset) const;
  /// The line, without its end, that holds the offset.
  std::string_view line_at(std::size_t offset) const;

 private:
  void normalise(std::string_view bytes);
  void fail(std::string_view expected, std::string_view got);

  std::string text_;
  std::shared_ptr<const std::string> file_;
  std::vector<std::size_t> line_starts_{0};
  std::optional<Diagnostic> mistake_;

  // Where position() counted last: the next question is mostly about the same line, further right.
  mutable std::size_t counted_start_ = 0;
  mutable std::size_t counted_offset_ = 0;
  mutable int counted_column_ = 1;
};

/// The length of the UTF-8 sequence at `text[at]`; 0 if there is none.
///
/// Overlong forms, surrogates and values above U+10FFFF are no UTF-8.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Every byte of `text` belongs to UTF-8.
bool is_utf8(std::string_view text);

}  // namespace otp::config
