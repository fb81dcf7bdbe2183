#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "otp/io/http.h"
#include "otp/io/socket.h"

namespace otp::io::testing {

/// An HTTP client for tests, in the Simulator and on real sockets. What goes wrong is thrown as
/// std::runtime_error with the reason.
///
///     auto client = co_await otp::io::testing::HttpClient::connect(address);
///     otp::io::HttpResponse response = co_await client.request("GET", "/healthz");
class HttpClient {
 public:
  static Async<HttpClient> connect(Address address);
  explicit HttpClient(Socket socket) : socket_(std::move(socket)) {}

  /// Sends a request and returns its answer.
  Async<HttpResponse> request(std::string method, std::string target, std::string body = {},
                              HttpHeaders headers = {});
  /// Sends bytes as they are; raw requests, one or several.
  Async<void> send(std::string bytes);
  /// The next answer on the connection; also 100. `to_head`: it has no body, whatever it says.
  Async<HttpResponse> receive(bool to_head = false, Timeout timeout = std::chrono::seconds(30));
  /// What else comes until the server closes; empty: nothing.
  Async<std::string> read_to_end(Timeout timeout = std::chrono::seconds(30));

  Socket& socket() { return socket_; }

 private:
  Socket socket_;
  std::string in_;
};

}  // namespace otp::io::testing
