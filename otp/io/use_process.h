#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <coroutine>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "otp/base/timeout.h"
#include "otp/io/asio_poller.h"
#include "otp/io/internal/asio_operation.h"

/// Makes any Asio, Beast or SSL operation awaitable inside a process.
///
///     size_t got = co_await socket.async_read_some(buffer, otp::io::use_process);   // or throws
///     auto read = co_await http::async_read(stream, buffer, request, otp::io::use_process_result);
///     if (read.error == http::error::end_of_stream) co_return;
///     co_await otp::io::with_timeout(socket.async_connect(to, otp::io::use_process), 5s);
///
/// While it waits, the process handles no message, exit signals act, and no thread is held. When
/// the process is killed, the operation is cancelled on the executor that runs its handlers, and
/// only once it has answered are the process's frames, and with them its stream and buffers,
/// destroyed. No user code runs inside a completion handler.
///
/// A stream that has ended is not read again: Asio answers the second read only if epoll tells of
/// the end once more, and otherwise never. otp::io::Socket has no such limit.
///
/// A user's asio::awaitable<T> is awaited by asio::co_spawn(context, std::move(it), use_process).
///
/// REQUIRES: what it operates on lives in the process (its frames or state), and its handlers run
/// one at a time: a context of this System (this_context()), a strand, or an io_context that one
/// thread runs.
namespace otp::io {

/// `co_await` gives the value (void, T, or a tuple of several) and throws
/// boost::system::system_error when the operation failed.
struct use_process_t {};
inline constexpr use_process_t use_process{};

/// `co_await` gives an Answer<T>: the error and the value, and does not throw for a failed
/// operation.
struct use_process_result_t {};
inline constexpr use_process_result_t use_process_result{};

/// How an operation ended. The value is there also when it failed half-way (bytes transferred).
template <class T>
struct Answer {
  boost::system::error_code error;
  T value{};
  explicit operator bool() const { return !error; }
};
template <>
struct Answer<void> {
  boost::system::error_code error;
  explicit operator bool() const { return !error; }
};

namespace internal {

template <class... T>
struct ValueOf {
  using type = std::tuple<T...>;
};
template <class T>
struct ValueOf<T> {
  using type = T;
};
template <>
struct ValueOf<> {
  using type = void;
};

/// The results of one completion signature, kept by the operation and taken by the process.
template <class... T>
class Results : public AsioOperation {
 public:
  using Value = typename ValueOf<T...>::type;

  template <class... V>
    requires(sizeof...(V) == sizeof...(T))
  void set_results(V&&... values) {
    values_.emplace(std::forward<V>(values)...);
  }
  template <class... V>
    requires(sizeof...(V) == sizeof...(T))
  void set_results(const boost::system::error_code& error, V&&... values) {
    error_ = error;
    values_.emplace(std::forward<V>(values)...);
  }
  template <class... V>
    requires(sizeof...(V) == sizeof...(T))
  void set_results(std::exception_ptr thrown, V&&... values) {
    thrown_ = std::move(thrown);
    values_.emplace(std::forward<V>(values)...);
  }

 protected:
  /// After the end: what is to be thrown whatever the token, and the error.
  boost::system::error_code outcome() {
    if (start_error_) std::rethrow_exception(start_error_);
    if (thrown_ && !expired()) std::rethrow_exception(thrown_);
    if (!values_) return boost::asio::error::operation_aborted;  // the handler was never called
    if (!expired()) return error_;
    if (thrown_ || error_ == boost::asio::error::operation_aborted) {
      return boost::asio::error::timed_out;
    }
    return error_;
  }
  std::optional<std::tuple<T...>> values_;

 private:
  boost::system::error_code error_;
  std::exception_ptr thrown_;
};

template <class Signature>
struct ResultsOf;
template <class R, class... T>
struct ResultsOf<R(T...)> {
  using type = Results<std::decay_t<T>...>;
};
template <class R, class... T>
struct ResultsOf<R(boost::system::error_code, T...)> {
  using type = Results<std::decay_t<T>...>;
};
template <class R, class... T>
struct ResultsOf<R(std::exception_ptr, T...)> {
  using type = Results<std::decay_t<T>...>;
};

/// One operation that has not been started, as an awaitable. co_await starts it.
template <class Signature, bool kThrows, class Initiation, class... Arguments>
class [[nodiscard]] AwaitedOperation final : public ResultsOf<Signature>::type {
  using Base = typename ResultsOf<Signature>::type;

 public:
  using Value = typename Base::Value;

  explicit AwaitedOperation(Initiation initiation, Arguments... arguments)
      : initiation_(std::move(initiation)), arguments_(std::move(arguments)...) {}
  /// REQUIRES: not awaited yet.
  AwaitedOperation(AwaitedOperation&& other)
      : Base(),
        initiation_(std::move(other.initiation_)),
        arguments_(std::move(other.arguments_)),
        timeout_(other.timeout_) {}

  void set_timeout(Timeout timeout) { timeout_ = timeout; }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    using Handler = AsioHandler<AwaitedOperation>;
    otp::internal::LibraryScope scope(otp::internal::env());
    this->enlist();
    if constexpr (requires { initiation_.get_executor(); }) {
      this->record(initiation_.get_executor());
    }
    Handler handler(this);
    try {
      std::apply(
          [&](Arguments&... each) {
            std::move(initiation_)(std::move(handler), std::move(each)...);
          },
          arguments_);
    } catch (...) {
      this->start_error_ = std::current_exception();  // the handler's destructor answers
    }
    this->wait(this->system().deadline_after(timeout_));
  }

  auto await_resume() {
    {
      otp::internal::LibraryScope scope(otp::internal::env());
      this->finish();
    }
    boost::system::error_code error = this->outcome();
    if constexpr (kThrows) {
      if (error) throw boost::system::system_error(error);
      if constexpr (!std::is_void_v<Value>) return take_value();
    } else if constexpr (std::is_void_v<Value>) {
      return Answer<void>{error};
    } else {
      return this->values_ ? Answer<Value>{error, take_value()} : Answer<Value>{error};
    }
  }

 private:
  Value take_value() {
    if constexpr (std::tuple_size_v<typename decltype(this->values_)::value_type> == 1) {
      return std::get<0>(std::move(*this->values_));
    } else {
      return std::move(*this->values_);
    }
  }
  Initiation initiation_;
  std::tuple<Arguments...> arguments_;
  Timeout timeout_ = infinity;
};

template <class Signature, bool kThrows>
struct ProcessResult {
  template <class Initiation, class Token, class... Arguments>
  static auto initiate(Initiation&& initiation, Token&&, Arguments&&... arguments) {
    return AwaitedOperation<Signature, kThrows, std::decay_t<Initiation>,
                            std::decay_t<Arguments>...>(std::forward<Initiation>(initiation),
                                                        std::forward<Arguments>(arguments)...);
  }
};

}  // namespace internal

/// Limits how long an operation is waited for: `co_await with_timeout(op, 5s)`. When the time is
/// over it is cancelled and its error is boost::asio::error::timed_out, unless it succeeded all the
/// same. After that a stream that it worked on is best closed: part of a message may have gone.
template <class Operation>
  requires requires(Operation& operation) { operation.set_timeout(infinity); }
Operation with_timeout(Operation operation, Timeout timeout) {
  operation.set_timeout(timeout);
  return operation;
}

}  // namespace otp::io

template <class Signature>
class boost::asio::async_result<otp::io::use_process_t, Signature>
    : public otp::io::internal::ProcessResult<Signature, true> {};

template <class Signature>
class boost::asio::async_result<otp::io::use_process_result_t, Signature>
    : public otp::io::internal::ProcessResult<Signature, false> {};
