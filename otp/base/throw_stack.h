#pragma once

/// The stack of a throw: where the exception that is being handled came from.
///
///   } catch (...) {
///     std::exception_ptr error = std::current_exception();
///     report(otp::exception_type_name(error), otp::exception_message(error),
///            otp::throw_stack(error));
///   }
///
/// How: every `throw` of the program goes through the linker's `--wrap=__cxa_throw` to a function
/// of ours (the library's link options see to it) that records the stack beside the exception, for
/// as long as the exception object lives: until the last exception_ptr to it is gone. So it does
/// not matter on which thread, how much later, or how often rethrown it is asked for.
///
/// Not recorded: exceptions thrown by shared libraries, which the linker's wrap does not reach.

#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>

#include "otp/base/await_stack.h"
#include "otp/base/stack_trace.h"

namespace otp {

namespace internal {
const void* exception_as(const std::exception_ptr& error, const std::type_info& type) noexcept;
/// For otp/async: an exception without a record has no await stack and takes none.
bool has_await_stack(const std::exception_ptr& error) noexcept;
void set_await_stack(const std::exception_ptr& error, const AwaitStack& stack) noexcept;
}  // namespace internal

/// The stack at which `error` was first thrown (std::make_exception_ptr: none, nothing was thrown).
std::optional<StackTrace> throw_stack(const std::exception_ptr& error) noexcept;

/// The same for the exception being handled by the innermost `catch` of this thread.
std::optional<StackTrace> throw_stack() noexcept;

/// Where the coroutines stood that `error` left on its way; empty for one that left none.
AwaitStack await_stack(const std::exception_ptr& error) noexcept;

/// `std::runtime_error`, `int`, `bank::Overdrawn`; empty for no exception or a foreign one.
std::string exception_type_name(const std::exception_ptr& error);

/// The exception as an E, if a `catch (const E&)` would take it; else null. Valid as long as
/// `error`. Costs nanoseconds, where throwing it again to look costs a microsecond.
template <class E>
const E* exception_as(const std::exception_ptr& error) noexcept {
  static_assert(std::is_class_v<E>);
  return static_cast<const E*>(internal::exception_as(error, typeid(E)));
}

/// what() of an exception that has one; else a thrown string or number as text; else empty.
std::string exception_message(const std::exception_ptr& error);

}  // namespace otp
