#pragma once

#include <stdexcept>
#include <type_traits>
#include <utility>

namespace otp {

/// A field of a server's Args that has no default: a configuration that leaves it out is refused.
///
///     struct Args {
///       otp::Required<std::string> currency;   // must be given
///       int64_t opening_cents = 0;             // may be left out
///     };
///
/// In C++ it is made from a T and reads as a T; one of a server's name, Required<Name<S>>, is an
/// address too wherever a Server<S> is wanted. Where a template has to find out the type,
/// `*args.currency` says it: otp::call(*args.ledger, Deposit{}).
///
/// Errors: std::logic_error when it is read and nobody gave it a value.
template <class T>
class Required {
 public:
  using Value = T;

  Required() = default;
  template <class U = T>
    requires(std::is_constructible_v<T, U &&> &&
             !std::is_same_v<std::remove_cvref_t<U>, Required> && std::is_convertible_v<U &&, T>)
  Required(U&& value) : value_(std::forward<U>(value)), given_(true) {}

  bool given() const noexcept { return given_; }
  const T& get() const {
    if (!given_) throw std::logic_error("a required argument was not given");
    return value_;
  }
  operator const T&() const { return get(); }
  /// A name as an address of the same server.
  template <class U>
    requires(std::is_same_v<typename U::ServerClass, typename T::ServerClass> &&
             !std::is_same_v<U, T> && std::is_convertible_v<const T&, U>)
  operator U() const {
    return get();
  }
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }

  /// The value's place, which counts as given from now on.
  T& emplace() {
    given_ = true;
    return value_;
  }

 private:
  T value_{};
  bool given_ = false;
};

}  // namespace otp
