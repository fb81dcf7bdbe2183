// TCP behind Socket and Listener: the process tries the system call itself, and only when that
// would wait it leaves the rest to the context of the socket.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "otp/io/internal/asio_context.h"
#include "otp/io/internal/asio_operation.h"
#include "otp/io/internal/socket_impl.h"
#include "otp/runtime/core.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/runtime_log.h"

namespace otp::io::internal {

namespace asio = boost::asio;
using asio::ip::tcp;
using otp::internal::LibraryScope;
using otp::internal::self_process;

namespace {

using TcpStream = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;
using TcpAcceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

constexpr int kBacklog = 1024;
// What the kernel takes beyond the other side's window: without a bound it is megabytes for each
// one that does not read, and a write of less ends though nothing of it can be sent.
constexpr int kUnsentBytes = 128 << 10;
constexpr auto kAcceptPause = std::chrono::milliseconds(20);
constexpr auto kAcceptLogEvery = std::chrono::seconds(10);

std::error_code from_errno(int error) { return {error, std::generic_category()}; }

std::error_code from_asio(const boost::system::error_code& error) {
  return error.category() == boost::system::system_category() ? from_errno(error.value())
                                                              : std::error_code(error);
}

struct RawAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

RawAddress to_raw(const Address& address) {
  const tcp::endpoint endpoint(asio::ip::make_address(address.host), address.port);
  RawAddress raw;
  raw.size = static_cast<socklen_t>(endpoint.size());
  std::memcpy(&raw.storage, endpoint.data(), endpoint.size());
  return raw;
}

Address from_raw(RawAddress& raw) {
  tcp::endpoint endpoint;
  if (raw.size > endpoint.capacity()) return {};
  std::memcpy(endpoint.data(), &raw.storage, raw.size);
  return {endpoint.address().to_string(), endpoint.port()};
}

Address local_of(int fd) {
  RawAddress raw;
  if (::getsockname(fd, raw.get(), &raw.size) != 0) return {};
  return from_raw(raw);
}

/// What a completion handler does here: notes the result and tells the process.
struct SocketHandler {
  using allocator_type = PoolAllocator<void>;
  SocketOperation* operation;

  allocator_type get_allocator() const noexcept { return {}; }
  void operator()(const boost::system::error_code& error, size_t bytes) const {
    if (error == asio::error::eof) {
      operation->set_result({}, 0);
    } else {
      operation->set_result(from_asio(error), bytes);
    }
    operation->complete();
  }
};

class TcpSocket final : public SocketImpl {
 public:
  /// Takes: fd: non-blocking and close-on-exec.
  TcpSocket(AsioPoller& poller, Descriptor fd, bool v6)
      : poller_(poller), socket_(poller.context()) {
    poller_.sockets().fetch_add(1, relaxed);
    const int one = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
    boost::system::error_code error;
    socket_.assign(v6 ? tcp::v6() : tcp::v4(), fd.get(), error);
    if (error) return;  // no memory for it in epoll: every use of it will say so
    fd.release();
    socket_.native_non_blocking(true, error);
  }
  ~TcpSocket() override {
    poller_.sockets().fetch_sub(1, relaxed);
    if (reset_ && socket_.is_open()) {
      const linger now{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
  }

  bool try_now(SocketOperation& operation) override {
    const int fd = socket_.native_handle();
    ssize_t done;
    do {
      done = operation.writes()
                 ? ::send(fd, operation.from().data(), operation.from().size(),
                          MSG_NOSIGNAL | MSG_DONTWAIT)
                 : ::recv(fd, operation.into().data(), operation.into().size(), MSG_DONTWAIT);
    } while (done < 0 && errno == EINTR);
    if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    operation.set_result(done < 0 ? from_errno(errno) : std::error_code(),
                         done < 0 ? 0 : static_cast<size_t>(done));
    return true;
  }

  void start(SocketOperation& operation) override {
    if (operation.writes()) {
      socket_.async_send(asio::buffer(operation.from().data(), operation.from().size()),
                         SocketHandler{&operation});
    } else {
      socket_.async_receive(asio::buffer(operation.into().data(), operation.into().size()),
                            SocketHandler{&operation});
    }
  }

  // The handler does not touch socket_, so this is no race although it runs elsewhere.
  void cancel(SocketOperation&) noexcept override {
    boost::system::error_code ignored;  // a closed socket has no operations
    socket_.cancel(ignored);
  }
  void shutdown_send() override {
    boost::system::error_code ignored;  // not connected any more: nothing to shut down
    socket_.shutdown(TcpStream::shutdown_send, ignored);
  }
  void set_reset() override { reset_ = true; }
  Address local() const override {
    return local_of(const_cast<TcpStream&>(socket_).native_handle());
  }
  Address remote() const override {
    RawAddress raw;
    const int fd = const_cast<TcpStream&>(socket_).native_handle();
    if (::getpeername(fd, raw.get(), &raw.size) != 0) return {};
    return from_raw(raw);
  }

 private:
  AsioPoller& poller_;
  TcpStream socket_;
  bool reset_ = false;
};

/// Waits until a descriptor can be read or written, as an awaitable.
template <class AsioSocket>
class Readiness final : public ProcessOperation {
 public:
  Readiness(AsioSocket& socket, typename AsioSocket::wait_type what, Timeout timeout)
      : socket_(socket), what_(what), timeout_(timeout) {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    LibraryScope scope(otp::internal::env());
    enlist();
    socket_.async_wait(what_, Handler{this});
    wait(system().deadline_after(timeout_));
  }
  /// False: the time was over, or waiting failed.
  bool await_resume() {
    LibraryScope scope(otp::internal::env());
    finish();
    return !error_;
  }

 private:
  struct Handler {
    using allocator_type = PoolAllocator<void>;
    Readiness* waiting;
    allocator_type get_allocator() const noexcept { return {}; }
    void operator()(const boost::system::error_code& error) const {
      waiting->error_ = error;
      waiting->complete();
    }
  };
  void request_cancel() noexcept override {
    boost::system::error_code ignored;
    socket_.cancel(ignored);
  }

  AsioSocket& socket_;
  const typename AsioSocket::wait_type what_;
  const Timeout timeout_;
  boost::system::error_code error_;
};

class TcpListener final : public ListenerImpl {
 public:
  TcpListener(AsioPoller& poller, Descriptor fd, bool v6)
      : v6_(v6), acceptor_(poller.context()), reserve_(open_reserve()) {
    boost::system::error_code error;
    acceptor_.assign(v6 ? tcp::v6() : tcp::v4(), fd.get(), error);
    if (!error) fd.release();
  }

  Async<Socket> accept() override {
    for (;;) {
      const int fd = take();
      if (fd >= 0) co_return wrap(fd);
      const int error = -fd;
      if (error == EAGAIN || error == EWOULDBLOCK) {
        Readiness readable(acceptor_, TcpAcceptor::wait_read, infinity);
        co_await readable;
      } else if (out_of_resources(error)) {
        drop_one(error);
        co_await otp::sleep(kAcceptPause);
      } else if (error != ECONNABORTED && error != EINTR && error != EPROTO && error != EPERM) {
        throw std::system_error(error, std::generic_category(), "accept");
      }
    }
  }
  Address local() const override {
    return local_of(const_cast<TcpAcceptor&>(acceptor_).native_handle());
  }
  uint64_t dropped() const override { return dropped_; }

 private:
  static Descriptor open_reserve() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
  static bool out_of_resources(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
  }
  /// A descriptor, or an errno negated. (errno itself must not be read in a coroutine, which may go
  /// on in another thread.)
  int take() {
    const int fd =
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd >= 0 ? fd : -errno;
  }
  Socket wrap(int fd) {
    AsioPoller* poller = least_loaded(self_process().system());
    return Socket(std::make_unique<TcpSocket>(*poller, Descriptor(fd), v6_));
  }

  // Uses the reserve to take one client off the queue, so that it is told instead of kept waiting.
  void drop_one(int error) {
    reserve_.reset();
    if (Descriptor client(take()); client) ++dropped_;
    reserve_ = open_reserve();
    const int64_t now = self_process().system().now();
    if (logged_at_ != 0 && now - logged_at_ < Duration(kAcceptLogEvery).count()) return;
    logged_at_ = now;
    otp::internal::log_runtime(self_process().system().log(), LogLevel::warning,
                               "accept on " + local().to_string() + ": " +
                                   from_errno(error).message() +
                                   "; connections dropped so far: " + std::to_string(dropped_));
  }

  const bool v6_;
  TcpAcceptor acceptor_;
  Descriptor reserve_;
  uint64_t dropped_ = 0;
  int64_t logged_at_ = 0;
};

class TcpNetwork final : public Network {
 public:
  ListenResult listen(const Address& address) override {
    const std::string what = "listen on " + address.to_string();
    RawAddress raw = to_raw(address);
    Descriptor fd(::socket(raw.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return SystemError::last(what);
    const int one = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (::bind(fd.get(), raw.get(), raw.size) != 0) return SystemError::last(what);
    if (::listen(fd.get(), kBacklog) != 0) return SystemError::last(what);
    const bool v6 = raw.storage.ss_family == AF_INET6;
    return std::make_unique<TcpListener>(*this_asio_poller(), std::move(fd), v6);
  }

  Async<ConnectResult> connect(Address address, Timeout timeout) override {
    const std::string what = "connect to " + address.to_string();
    bool v6 = false;
    Descriptor fd;
    int error = begin_connect(address, fd, v6);
    if (error == EINPROGRESS) {
      // It owns the descriptor while the process waits, and may be killed.
      TcpStream waiting(this_asio_poller()->context(), v6 ? tcp::v6() : tcp::v4(), fd.get());
      fd.release();
      Readiness writable(waiting, TcpStream::wait_write, timeout);
      const bool ready = co_await writable;
      fd = Descriptor(waiting.release());
      error = ready ? pending_error(fd.get()) : ETIMEDOUT;
    }
    if (error != 0) co_return SystemError{error, what};
    AsioPoller* poller = least_loaded(self_process().system());
    co_return Socket(std::make_unique<TcpSocket>(*poller, std::move(fd), v6));
  }

 private:
  static int begin_connect(const Address& address, Descriptor& fd, bool& v6) {
    RawAddress raw = to_raw(address);
    v6 = raw.storage.ss_family == AF_INET6;
    fd = Descriptor(::socket(raw.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return errno;
    return ::connect(fd.get(), raw.get(), raw.size) == 0 ? 0 : errno;
  }
  static int pending_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
};

}  // namespace

Network& tcp_network() {
  static TcpNetwork network;  // it has no state
  return network;
}

}  // namespace otp::io::internal
