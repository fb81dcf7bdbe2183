#include "otp/io/socket.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>

#include "otp/io/internal/socket_impl.h"
#include "otp/runtime/core.h"

namespace otp::io {

using otp::internal::LibraryScope;
using otp::internal::self_process;

// ---- Addresses

std::optional<Address> Address::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  Address address;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  if (host == "localhost") host = "127.0.0.1";
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  address.host = host;
  in6_addr parsed;
  const int family = bracketed ? AF_INET6 : AF_INET;
  if (::inet_pton(family, address.host.c_str(), &parsed) != 1) return std::nullopt;
  return address;
}

std::string Address::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// ---- Operations

namespace internal {

namespace {
constexpr int kOperationCost = 16;  // of a slice's budget: about a system call
}  // namespace

bool SocketOperation::await_ready() {
  LibraryScope scope(otp::internal::env());
  otp::internal::Process& process = self_process();
  // A process that always finds something to do gives the others their turn, too; one that is about
  // to end does not go on.
  if (process.exiting() || !process.charge(kOperationCost)) return false;
  return socket_.try_now(*this);
}

void SocketOperation::suspend() {
  LibraryScope scope(otp::internal::env());
  suspended_ = true;
  enlist();
  socket_.start(*this);
  wait(system().deadline_after(timeout_));
}

Transfer SocketOperation::await_resume() {
  if (!suspended_) return result_;
  LibraryScope scope(otp::internal::env());
  finish();
  if (!filled_ && !expired()) socket_.try_now(*this);
  socket_.finished(*this);
  if (!filled_ || (expired() && result_.error == std::errc::operation_canceled)) {
    result_ = {std::make_error_code(std::errc::timed_out), 0};
  }
  return result_;
}

}  // namespace internal

// ---- Socket and Listener

Async<std::variant<Socket, SystemError>> Socket::connect(Address address, Timeout timeout) {
  internal::Network* network = internal::this_network();
  if (network == nullptr) {
    co_return SystemError{ENOTSUP, "connect to " + address.to_string()};
  }
  co_return co_await network->connect(std::move(address), timeout);
}

Async<Transfer> Socket::write(std::string_view data, Timeout timeout) {
  otp::internal::SystemImpl& system = self_process().system();
  const int64_t deadline = system.deadline_after(timeout);
  Transfer all;
  while (all.bytes < data.size()) {
    const bool limited = !timeout.is_infinite();
    const Timeout left = limited ? Timeout(Duration(deadline - system.now())) : infinity;
    const Transfer one = co_await write_some(data.substr(all.bytes), left);
    all.bytes += one.bytes;
    all.error = one.error;
    if (one.error) break;
  }
  co_return all;
}

Listener::Listener() = default;
Listener::Listener(Listener&&) noexcept = default;
Listener& Listener::operator=(Listener&&) noexcept = default;
Listener::~Listener() = default;
Listener::Listener(std::unique_ptr<internal::ListenerImpl> impl) : impl_(std::move(impl)) {}

std::variant<Listener, SystemError> Listener::listen(const Address& address) {
  internal::Network* network = internal::this_network();
  if (network == nullptr) return SystemError{ENOTSUP, "listen on " + address.to_string()};
  internal::ListenResult made = network->listen(address);
  if (auto* error = std::get_if<SystemError>(&made)) return std::move(*error);
  return Listener(std::get<0>(std::move(made)));
}

std::variant<Listener, SystemError> Listener::listen(std::string_view text) {
  const std::optional<Address> address = Address::parse(text);
  if (!address) return SystemError{EINVAL, "listen on `" + std::string(text) + "`"};
  return listen(*address);
}

Async<Socket> Listener::accept() { return impl_->accept(); }
Address Listener::local_address() const { return impl_->local(); }
uint64_t Listener::dropped() const { return impl_->dropped(); }

}  // namespace otp::io
