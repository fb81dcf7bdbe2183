#pragma once

#include <compare>
#include <cstdint>

namespace otp {

/// A number of bytes: what a configuration file writes as `64KiB` or `10MiB`.
struct Bytes {
  uint64_t count = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

constexpr Bytes kibibytes(uint64_t n) { return {n << 10}; }
constexpr Bytes mebibytes(uint64_t n) { return {n << 20}; }
constexpr Bytes gibibytes(uint64_t n) { return {n << 30}; }

}  // namespace otp
