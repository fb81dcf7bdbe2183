#pragma once

#include <memory>
#include <variant>

#include "otp/io/socket.h"

namespace otp::io::internal {

/// What a Listener is made of: TCP or simulated.
class ListenerImpl {
 public:
  virtual ~ListenerImpl() = default;
  virtual Async<Socket> accept() = 0;
  virtual Address local() const = 0;
  virtual uint64_t dropped() const = 0;
};

using ListenResult = std::variant<std::unique_ptr<ListenerImpl>, SystemError>;
using ConnectResult = std::variant<Socket, SystemError>;

/// The sockets of a System, decided by its pollers.
class Network {
 public:
  virtual ~Network() = default;
  virtual ListenResult listen(const Address& address) = 0;
  virtual Async<ConnectResult> connect(Address address, Timeout timeout) = 0;
};

/// TCP on the contexts of the calling process's System.
Network& tcp_network();

/// The network of the calling process's System, or null if it has none.
Network* this_network();

}  // namespace otp::io::internal
