// Reads the texts of scalars: numbers, durations, sizes. Nothing here looks at the locale.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace otp::config {

/// A whole number with its sign, wide enough for int64_t and uint64_t.
struct WholeNumber {
  bool negative = false;
  uint64_t magnitude = 0;
};

/// How a text missed: `wrong` is no such thing at all, `too_large` is one that does not fit.
enum class Missed { no, wrong, too_large };

template <class T>
struct Reading {
  T value{};
  Missed missed = Missed::no;
};

/// Reads `42`, `+42` or `-42`: decimal digits without leading zeros, which some readers take for
/// octal.
Reading<WholeNumber> read_whole_number(std::string_view text);

/// Reads `4.5`, `-1e3`: decimal, finite, without leading zeros.
Reading<double> read_number(std::string_view text);

/// The largest duration that a configuration may hold, a hundred years: it fits everything it is
/// added to.
inline constexpr int64_t kDurationMaxNs = int64_t{36500} * 24 * 3600 * 1'000'000'000;

/// Reads `250ms`, `5s`, `1.5h`: a decimal number that is not negative and one of the units ns, us,
/// ms, s, m, h, d. The result is in nanoseconds and exact: `0.5ns` is wrong.
Reading<int64_t> read_duration(std::string_view text);

/// The largest size that a configuration may hold: 1PiB.
inline constexpr uint64_t kBytesMax = uint64_t{1} << 50;

/// Reads `512B`, `64KiB`, `1.5GiB`: a decimal number and one of the units B, KiB, MiB, GiB, TiB.
Reading<uint64_t> read_bytes(std::string_view text);

/// `90s`, in the largest unit that says it exactly.
std::string duration_text(int64_t ns);

/// The duration or size that `text` may have meant, such as `5s` for `5 S`; empty if there is none.
std::string near_duration(std::string_view text);
std::string near_bytes(std::string_view text);

}  // namespace otp::config
