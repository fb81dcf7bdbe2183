#pragma once

#include "otp/base/compiler.h"

#include <cstdio>
#include <cstdlib>

/// OTP_CHECK(condition, format, values...): aborts the node when an invariant of the runtime is
/// broken, and prints the values that broke it.
///
/// For the library's own invariants only. A fault of user code is an exception and ends one
/// process; a planned outcome is an otp::Result. The text goes to standard error, as nothing else
/// can be trusted any more.
#define OTP_CHECK(condition, ...)                                                               \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      ::std::fprintf(stderr, "%s:%d: broken invariant `%s`: ", __FILE__, __LINE__, #condition); \
      ::std::fprintf(stderr, __VA_ARGS__);                                                      \
      ::std::fputc('\n', stderr);                                                               \
      ::std::abort();                                                                           \
    }                                                                                           \
  } while (false)
