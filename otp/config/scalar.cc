#include "otp/config/scalar.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace otp::config {
namespace {

using Wide = unsigned __int128;

constexpr std::size_t kFractionDigitsMax = 18;  // times the largest unit fits a Wide

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

struct Unit {
  std::string_view name;
  uint64_t size;
};

constexpr std::array kTimeUnits{
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
    Unit{"d", 86'400'000'000'000},
};

constexpr std::array kByteUnits{
    Unit{"B", 1},
    Unit{"KiB", uint64_t{1} << 10},
    Unit{"MiB", uint64_t{1} << 20},
    Unit{"GiB", uint64_t{1} << 30},
    Unit{"TiB", uint64_t{1} << 40},
};

/// `12.50` cut into its parts: whole `12`, fraction `50`.
struct Decimal {
  std::string_view whole;
  std::string_view fraction;
  std::string_view rest;
};

std::size_t count_digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return n;
}

bool has_leading_zero(std::string_view digits) { return digits.size() > 1 && digits[0] == '0'; }

std::optional<Decimal> split_decimal(std::string_view text) {
  Decimal parts;
  parts.whole = text.substr(0, count_digits(text));
  text.remove_prefix(parts.whole.size());
  if (parts.whole.empty() || has_leading_zero(parts.whole)) return std::nullopt;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    parts.fraction = text.substr(0, count_digits(text));
    if (parts.fraction.empty()) return std::nullopt;
    text.remove_prefix(parts.fraction.size());
  }
  parts.rest = text;
  return parts;
}

/// A decimal number times a unit, exactly, or too_large above `max`.
Reading<uint64_t> scaled(const Decimal& parts, uint64_t unit, uint64_t max) {
  Wide sum = 0;
  for (const char c : parts.whole) {
    sum = sum * 10 + static_cast<unsigned>(c - '0');
    if (sum > max) return {0, Missed::too_large};
  }
  sum *= unit;
  std::string_view fraction = parts.fraction;
  while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
  if (fraction.size() > kFractionDigitsMax) return {0, Missed::wrong};
  Wide part = 0;
  Wide ten_to_the_n = 1;
  for (const char c : fraction) {
    part = part * 10 + static_cast<unsigned>(c - '0');
    ten_to_the_n *= 10;
  }
  if (part * unit % ten_to_the_n != 0) return {0, Missed::wrong};  // finer than 1ns or 1B
  sum += part * unit / ten_to_the_n;
  if (sum > max) return {0, Missed::too_large};
  return {static_cast<uint64_t>(sum), Missed::no};
}

template <class Units>
Reading<uint64_t> read_with_unit(std::string_view text, const Units& units, uint64_t max) {
  const std::optional<Decimal> parts = split_decimal(text);
  if (!parts) return {0, Missed::wrong};
  for (const Unit& unit : units) {
    if (parts->rest == unit.name) return scaled(*parts, unit.size, max);
  }
  return {0, Missed::wrong};
}

/// The number at the start of `text` as it is written, and the letters behind it in lower case.
struct Loose {
  std::string number;
  std::string letters;
};

std::optional<Loose> read_loosely(std::string_view text) {
  Loose loose;
  std::size_t i = count_digits(text);
  if (i == 0 || has_leading_zero(text.substr(0, i))) return std::nullopt;
  loose.number = text.substr(0, i);
  while (i < text.size() && text[i] == ' ') ++i;
  for (; i < text.size(); ++i) loose.letters += lower(text[i]);
  return loose;
}

}  // namespace

Reading<WholeNumber> read_whole_number(std::string_view text) {
  WholeNumber number;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.empty() || count_digits(text) != text.size() || has_leading_zero(text)) {
    return {{}, Missed::wrong};
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number.magnitude);
  if (error != std::errc{}) return {number, Missed::too_large};
  return {number, Missed::no};
}

Reading<double> read_number(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (digits.empty() || !is_digit(digits[0]) ||
      has_leading_zero(digits.substr(0, count_digits(digits)))) {
    return {0, Missed::wrong};
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
    return {0, Missed::wrong};
  }
  if (error != std::errc{} || !std::isfinite(value)) return {0, Missed::too_large};
  return {value, Missed::no};
}

Reading<int64_t> read_duration(std::string_view text) {
  const auto reading = read_with_unit(text, kTimeUnits, static_cast<uint64_t>(kDurationMaxNs));
  return {static_cast<int64_t>(reading.value), reading.missed};
}

Reading<uint64_t> read_bytes(std::string_view text) {
  return read_with_unit(text, kByteUnits, kBytesMax);
}

std::string duration_text(int64_t ns) {
  for (std::size_t i = kTimeUnits.size(); i-- > 0;) {
    const auto size = static_cast<int64_t>(kTimeUnits[i].size);
    if (ns != 0 && ns % size == 0)
      return std::to_string(ns / size) + std::string(kTimeUnits[i].name);
  }
  return "0s";
}

std::string near_duration(std::string_view text) {
  const std::optional<Loose> loose = read_loosely(text);
  if (!loose) return {};
  struct Spelling {
    std::string_view letters;
    std::string_view unit;
  };
  constexpr std::array kSpellings{
      Spelling{"", "s"},       Spelling{"sec", "s"},     Spelling{"secs", "s"},
      Spelling{"second", "s"}, Spelling{"seconds", "s"}, Spelling{"min", "m"},
      Spelling{"mins", "m"},   Spelling{"minute", "m"},  Spelling{"minutes", "m"},
      Spelling{"msec", "ms"},  Spelling{"hour", "h"},    Spelling{"hours", "h"},
      Spelling{"hr", "h"},     Spelling{"day", "d"},     Spelling{"days", "d"},
      Spelling{"usec", "us"},
  };
  for (const Spelling& spelling : kSpellings) {
    if (loose->letters == spelling.letters) return loose->number + std::string(spelling.unit);
  }
  for (const Unit& unit : kTimeUnits) {
    if (loose->letters == unit.name) return loose->number + std::string(unit.name);
  }
  return {};
}

std::string near_bytes(std::string_view text) {
  const std::optional<Loose> loose = read_loosely(text);
  if (!loose) return {};
  if (loose->letters.empty()) return loose->number + "B";
  for (const Unit& unit : kByteUnits) {
    const char first = lower(unit.name[0]);
    if (loose->letters[0] != first) continue;
    const std::string rest = loose->letters.substr(1);
    if (rest.empty() || rest == "b" || rest == "ib" || rest == "i" || rest == "ytes") {
      return loose->number + std::string(unit.name);
    }
  }
  return {};
}

}  // namespace otp::config
