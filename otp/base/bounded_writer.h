#pragma once

/// Text of limited size: whoever formats a value of unknown size into it stops at the limit.

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace otp {

class Term;

/// How much of a large value is shown.
struct FormatLimits {
  size_t elements_max = 32;  ///< of each container
  size_t string_bytes_max = 256;
  size_t depth_max = 8;  ///< of structs and containers in one another
};

/// Collects text up to a limit and drops the rest.
///
/// A formatter asks full() in its loops and stops then, so that the work is bounded as well as the
/// memory. Text is only cut between two letters of UTF-8.
class BoundedWriter {
 public:
  explicit BoundedWriter(size_t bytes_max, FormatLimits limits = {})
      : limits_(limits), bytes_max_(bytes_max) {}
  BoundedWriter(const BoundedWriter&) = delete;
  BoundedWriter& operator=(const BoundedWriter&) = delete;

  const FormatLimits& limits() const { return limits_; }
  /// Nothing more fits: further text is dropped, so stop.
  bool full() const { return full_; }
  size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

  BoundedWriter& write(std::string_view text);
  BoundedWriter& write(char letter) { return write(std::string_view(&letter, 1)); }

  /// The same digits in every locale.
  template <class N>
    requires(std::integral<N> || std::floating_point<N>)
  BoundedWriter& number(N value) {
    char digits[64];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    return write(std::string_view(digits, static_cast<size_t>(end - digits)));
  }

  /// In double quotes, with escapes; cut after limits().string_bytes_max, with the true length.
  BoundedWriter& quoted(std::string_view text);

  /// In Erlang's notation.
  BoundedWriter& term(const Term& term);

  /// Lets `fill(*this)` write at most `bytes_max` bytes and a mark when that was too little.
  template <class Fill>
  BoundedWriter& section(size_t bytes_max, Fill&& fill) {
    const size_t outer_max = bytes_max_;
    const bool outer_full = full_;
    bytes_max_ = std::min(outer_max, text_.size() + bytes_max);
    full_ = outer_full || bytes_max_ == text_.size();
    try {
      fill(*this);
    } catch (...) {
      end_section(outer_max, outer_full);
      throw;
    }
    end_section(outer_max, outer_full);
    return *this;
  }

  /// For formatters of nested values: depth() counts those that live.
  class Nested {
   public:
    explicit Nested(BoundedWriter& writer) : writer_(writer) { ++writer_.depth_; }
    ~Nested() { --writer_.depth_; }
    Nested(const Nested&) = delete;
    bool too_deep() const { return writer_.depth_ > writer_.limits_.depth_max; }

   private:
    BoundedWriter& writer_;
  };

 private:
  void end_section(size_t outer_max, bool outer_full);

  const FormatLimits limits_;
  std::string text_;
  size_t bytes_max_;
  size_t depth_ = 0;
  bool full_ = false;
};

/// What stands where a section was cut.
inline constexpr std::string_view kCutMark = "... (cut)";

}  // namespace otp
