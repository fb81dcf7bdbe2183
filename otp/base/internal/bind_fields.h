// Structured bindings of 1 to 32 fields: the one part of reflection that has to be spelled out.
// Private to otp/base/reflect.h; the macros end with this file.

#pragma once

#include <cstddef>

namespace otp::internal {

inline constexpr std::size_t kFieldsMax = 32;

#define OTP_BIND(n, ...)              \
  if constexpr (N == n) {             \
    auto& [__VA_ARGS__] = object;     \
    return visit(__VA_ARGS__);        \
  } else
#define OTP_A8 a0, a1, a2, a3, a4, a5, a6, a7
#define OTP_B8 b0, b1, b2, b3, b4, b5, b6, b7
#define OTP_C8 c0, c1, c2, c3, c4, c5, c6, c7
#define OTP_D8 d0, d1, d2, d3, d4, d5, d6, d7

/// Calls `visit` with the N fields of `object`, as lvalues and in the order of their declaration.
template <std::size_t N, class T, class Visit>
constexpr decltype(auto) bind_fields([[maybe_unused]] T& object, Visit&& visit) {
  OTP_BIND(1, a0)
  OTP_BIND(2, a0, a1)
  OTP_BIND(3, a0, a1, a2)
  OTP_BIND(4, a0, a1, a2, a3)
  OTP_BIND(5, a0, a1, a2, a3, a4)
  OTP_BIND(6, a0, a1, a2, a3, a4, a5)
  OTP_BIND(7, a0, a1, a2, a3, a4, a5, a6)
  OTP_BIND(8, a0, a1, a2, a3, a4, a5, a6, a7)
  OTP_BIND(9, OTP_A8, b0)
  OTP_BIND(10, OTP_A8, b0, b1)
  OTP_BIND(11, OTP_A8, b0, b1, b2)
  OTP_BIND(12, OTP_A8, b0, b1, b2, b3)
  OTP_BIND(13, OTP_A8, b0, b1, b2, b3, b4)
  OTP_BIND(14, OTP_A8, b0, b1, b2, b3, b4, b5)
  OTP_BIND(15, OTP_A8, b0, b1, b2, b3, b4, b5, b6)
  OTP_BIND(16, OTP_A8, OTP_B8)
  OTP_BIND(17, OTP_A8, OTP_B8, c0)
  OTP_BIND(18, OTP_A8, OTP_B8, c0, c1)
  OTP_BIND(19, OTP_A8, OTP_B8, c0, c1, c2)
  OTP_BIND(20, OTP_A8, OTP_B8, c0, c1, c2, c3)
  OTP_BIND(21, OTP_A8, OTP_B8, c0, c1, c2, c3, c4)
  OTP_BIND(22, OTP_A8, OTP_B8, c0, c1, c2, c3, c4, c5)
  OTP_BIND(23, OTP_A8, OTP_B8, c0, c1, c2, c3, c4, c5, c6)
  OTP_BIND(24, OTP_A8, OTP_B8, OTP_C8)
  OTP_BIND(25, OTP_A8, OTP_B8, OTP_C8, d0)
  OTP_BIND(26, OTP_A8, OTP_B8, OTP_C8, d0, d1)
  OTP_BIND(27, OTP_A8, OTP_B8, OTP_C8, d0, d1, d2)
  OTP_BIND(28, OTP_A8, OTP_B8, OTP_C8, d0, d1, d2, d3)
  OTP_BIND(29, OTP_A8, OTP_B8, OTP_C8, d0, d1, d2, d3, d4)
  OTP_BIND(30, OTP_A8, OTP_B8, OTP_C8, d0, d1, d2, d3, d4, d5)
  OTP_BIND(31, OTP_A8, OTP_B8, OTP_C8, d0, d1, d2, d3, d4, d5, d6)
  OTP_BIND(32, OTP_A8, OTP_B8, OTP_C8, OTP_D8)
  return visit();
}

#undef OTP_D8
#undef OTP_C8
#undef OTP_B8
#undef OTP_A8
#undef OTP_BIND

}  // namespace otp::internal
