#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "otp/async/async.h"
#include "otp/base/shareable.h"
#include "otp/base/timeout.h"
#include "otp/io/descriptor.h"
#include "otp/io/internal/process_operation.h"

/// Stream sockets for processes: TCP under a real System, a virtual network inside a Simulator.
///
///     auto listener = std::get<otp::io::Listener>(otp::io::Listener::listen("127.0.0.1:0"));
///     otp::io::Socket socket = co_await listener.accept();
///     char buffer[4096];
///     auto got = co_await socket.read_some(buffer, 5s);
///     if (!got.error && got.bytes > 0) co_await socket.write({buffer, got.bytes});
///
/// Which of the two is decided by the System the process runs in: its options come from
/// otp::io::system_options() or otp::io::simulated_options(). An application runs unchanged in
/// both.
///
/// A socket belongs to one process at a time and does one thing at a time; it may be given to
/// another one in a message. Killing the process closes it. No descriptor here is inherited by a
/// child program.
namespace otp::io {

/// A numeric address and a port: "127.0.0.1:8080", "[::1]:8080", "localhost:0" (which is
/// 127.0.0.1). Port 0: a free one is picked.
struct Address {
  std::string host = "127.0.0.1";
  uint16_t port = 0;

  static std::optional<Address> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const Address&, const Address&) = default;
};

/// How a read or a write ended. Error std::errc::timed_out: its time was over;
/// connection_reset, broken_pipe: the other side is gone.
struct Transfer {
  std::error_code error{};
  size_t bytes = 0;

  bool ok() const { return !error; }
  /// Of a read: the other side sends nothing more. It may still be reading.
  bool at_end() const { return !error && bytes == 0; }
};

namespace internal {

class SocketOperation;

/// What a Socket is made of: TCP or simulated. One operation at a time.
class SocketImpl {
 public:
  virtual ~SocketImpl() = default;
  /// Does it now if that is possible without waiting, and fills the result.
  virtual bool try_now(SocketOperation& operation) = 0;
  /// Starts it; operation.complete() follows. The caller tries again if the result is not filled.
  virtual void start(SocketOperation& operation) = 0;
  /// Makes a started operation complete soon, if it has not yet.
  virtual void cancel(SocketOperation& operation) noexcept = 0;
  /// A started operation is over: forget it.
  virtual void finished(SocketOperation&) {}
  virtual void shutdown_send() = 0;
  /// The other side shall see a reset and not an orderly end.
  virtual void set_reset() = 0;
  virtual Address local() const = 0;
  virtual Address remote() const = 0;
};

/// A read or a write under way, as what is awaited.
class [[nodiscard]] SocketOperation final : public ProcessOperation {
 public:
  SocketOperation(SocketImpl& socket, std::span<char> into, Timeout timeout)
      : socket_(socket), into_(into), timeout_(timeout) {}
  SocketOperation(SocketImpl& socket, std::string_view from, Timeout timeout)
      : socket_(socket), from_(from), timeout_(timeout), writes_(true) {}

  bool await_ready();
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    suspend();
  }
  Transfer await_resume();

  // For the implementations.
  bool writes() const { return writes_; }
  std::span<char> into() const { return into_; }
  std::string_view from() const { return from_; }
  void set_result(std::error_code error, size_t bytes) {
    result_ = {error, bytes};
    filled_ = true;
  }

 private:
  void suspend();
  void request_cancel() noexcept override { socket_.cancel(*this); }

  SocketImpl& socket_;
  std::span<char> into_;
  std::string_view from_;
  Timeout timeout_;
  Transfer result_;
  bool writes_ = false;
  bool filled_ = false;
  bool suspended_ = false;
};

class ListenerImpl;

}  // namespace internal

/// One end of a connection. Empty after it was moved from.
class Socket {
 public:
  Socket() = default;
  explicit Socket(std::unique_ptr<internal::SocketImpl> impl) : impl_(std::move(impl)) {}

  /// Connects to `address`. Errors: connection_refused, timed_out, …
  static Async<std::variant<Socket, SystemError>> connect(Address address,
                                                          Timeout timeout = infinity);

  /// Waits for at least one byte, and takes what is there. At the end of input: 0 bytes, no error.
  internal::SocketOperation read_some(std::span<char> buffer, Timeout timeout = infinity) {
    return internal::SocketOperation(*impl_, buffer, timeout);
  }
  /// Writes at least one byte and what can be written without waiting.
  internal::SocketOperation write_some(std::string_view data, Timeout timeout = infinity) {
    return internal::SocketOperation(*impl_, data, timeout);
  }
  /// Writes all of `data`, which must live until it returns. `timeout` is for all of it.
  Async<Transfer> write(std::string_view data, Timeout timeout = infinity);

  /// Nothing more will be sent; what was written still arrives, and reading goes on.
  void shutdown_send() { impl_->shutdown_send(); }
  /// Drops the connection: the other side's reads and writes fail with connection_reset.
  void reset() {
    impl_->set_reset();
    impl_.reset();
  }
  void close() { impl_.reset(); }

  explicit operator bool() const { return impl_ != nullptr; }
  Address local_address() const { return impl_->local(); }
  Address remote_address() const { return impl_->remote(); }

 private:
  std::unique_ptr<internal::SocketImpl> impl_;
};

/// Takes connections on an address.
class Listener {
 public:
  /// Listens. The port can be taken again at once after the listener has gone (SO_REUSEADDR).
  /// Errors: address_in_use, permission_denied, no sockets in this System (ENOTSUP), …
  static std::variant<Listener, SystemError> listen(const Address& address);
  /// The same with the text of an address; EINVAL if it is none.
  static std::variant<Listener, SystemError> listen(std::string_view address);

  Listener();
  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  /// The next connection. New ones live on the least loaded core.
  ///
  /// Out of descriptors it does not spin: one connection is taken with a descriptor held in reserve
  /// and closed, so that its client knows, and a pause follows; a line is logged now and then.
  Async<Socket> accept();

  /// With the port that was picked.
  Address local_address() const;
  /// Connections dropped because there was no descriptor for them.
  uint64_t dropped() const;

 private:
  explicit Listener(std::unique_ptr<internal::ListenerImpl> impl);
  std::unique_ptr<internal::ListenerImpl> impl_;
};

}  // namespace otp::io

/// A socket owns what it needs and belongs to whoever has it.
template <>
struct otp::Shareable<otp::io::Socket> : std::true_type {};
