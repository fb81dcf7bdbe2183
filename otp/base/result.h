#pragma once

#include <utility>
#include <variant>

#include "otp/base/check.h"
#include "otp/base/exit_reason.h"

namespace otp {

/// The third outcome of a start: the server said otp::ignore() in its init. See Result::ignored().
struct Ignored {
  friend bool operator==(Ignored, Ignored) = default;
};

/// A value, or the ExitReason for which there is none; a start may also be `ignored`.
///
/// For outcomes that the caller plans for. The pair function that throws instead has the plain name
/// (`call` throws, `try_call` returns a Result).
///
///     otp::Result<int> price = co_await otp::try_call(shop, Price{.sku = 7});
///     if (price.ok()) use(price.value()); else log(price.error().to_string());
template <class T>
class [[nodiscard]] Result {
 public:
  using Value = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(ExitReason error) : state_(std::in_place_index<1>, std::move(error)) {}
  Result(Ignored ignored) : state_(std::in_place_index<2>, ignored) {}

  bool ok() const { return state_.index() == 0; }
  bool ignored() const { return state_.index() == 2; }
  explicit operator bool() const { return ok(); }

  /// REQUIRES: ok(). Aborts with the error's text otherwise.
  T& value() & { return require(), std::get<0>(state_); }
  const T& value() const& { return require(), std::get<0>(state_); }
  T&& value() && { return require(), std::get<0>(std::move(state_)); }
  T value_or(T other) && { return ok() ? std::get<0>(std::move(state_)) : std::move(other); }

  /// The reason; `normal` when ok(), the atom `ignore` when ignored().
  ExitReason error() const {
    if (state_.index() == 1) return std::get<1>(state_);
    return ignored() ? ExitReason::atom("ignore") : ExitReason();
  }
  /// The value, or throws otp::Exit with the reason, which ends the calling process.
  T or_exit() && {
    if (!ok()) throw Exit(error());
    return std::get<0>(std::move(state_));
  }

 private:
  void require() const {
    OTP_CHECK(ok(), "value of a failed Result: %s", error().to_string().c_str());
  }
  std::variant<T, ExitReason, Ignored> state_;
};

/// A Result without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  using Value = void;
  Result() = default;
  Result(ExitReason error) : error_(std::move(error)), ok_(false) {}
  Result(Ignored) : error_(ExitReason::atom("ignore")), ok_(false), ignored_(true) {}

  bool ok() const { return ok_; }
  bool ignored() const { return ignored_; }
  explicit operator bool() const { return ok_; }
  void value() const { OTP_CHECK(ok_, "value of a failed Result: %s", error_.to_string().c_str()); }
  ExitReason error() const { return error_; }
  void or_exit() const {
    if (!ok_) throw Exit(error_);
  }

 private:
  ExitReason error_;
  bool ok_ = true;
  bool ignored_ = false;
};

}  // namespace otp
