#pragma once

/// Refuses compilers with which the library would be built wrongly; included by every part of it.
///
/// g++ 12 destroys twice what is made by aggregate initialisation, or a lambda with captures,
/// inside a co_await expression: `co_await otp::call(log, Note{.text = s})` corrupts memory there.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#error "otp: g++ before 13 miscompiles coroutines; build with clang 19 (CC=clang-19)"
#elif __cplusplus < 202002L
#error "otp: C++20 is needed (-std=c++20)"
#endif

/// Defined when the code is compiled for the address or the thread sanitizer.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OTP_SANITIZED 1
#endif
#endif
