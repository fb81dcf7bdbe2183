#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "otp/async/async.h"
#include "otp/base/atomic.h"
#include "otp/behaviour/gen_server.h"
#include "otp/io/http.h"
#include "otp/io/socket.h"

/// An HTTP/1 server for a supervision tree: a listener, and a process for each connection.
///
///     otp::Async<otp::io::HttpResponse> hello(otp::io::HttpRequest request) {
///       co_return otp::io::HttpResponse{.body = "hello, " + request.target + "\n"};
///     }
///     auto server = (co_await otp::start_link<otp::io::HttpServer>(
///                        {.options = {.listen = "127.0.0.1:8080"}, .service = {.handle = hello}}))
///                       .or_exit();
///
/// What it sees to: limits of sizes and times; keep-alive and pipelining, answers in order; HEAD
/// and statuses without a body; `Expect: 100-continue`; Host and the framing of bodies (400, 413,
/// 417, 431, 501, 505); a client that has shut down its sending half still gets its answer. A
/// handler that throws gives 500 and a line in the log. Paths and methods are the handler's
/// business.
///
/// The times are absolute: a client that drips bytes does not extend them. When one is over and
/// part of a request has come, the answer is 408; an idle connection is closed without a word, and
/// one whose client does not take its answer is reset.
///
/// A connection that waits costs a process and a page for what it has sent; one that does not read
/// costs its answer and 128 KiB in the kernel. So a handler's largest answer times connections_max
/// is what such clients can take: answer in pages.
///
/// Stopping (terminate): no more connections are taken, idle ones are closed, requests that are
/// being handled get their answer; answers that nobody reads are given up a second after the stop,
/// or after their own beginning if that is later. The child specification's shutdown time limits
/// all of it. A server that was killed can be started again at
/// once: if its port is still held by what is being torn down, init waits for it.
///
/// Not for the open internet: put a TLS-terminating proxy before it.
namespace otp::io {

struct HttpOptions {
  std::string listen = "127.0.0.1:0";  ///< port 0: a free one, the same again after a restart
  size_t header_bytes_max = 16 << 10;  ///< request line and headers; more: 431
  size_t body_bytes_max = 1 << 20;     ///< more: 413
  Duration idle_timeout = std::chrono::seconds(60);    ///< until the first byte of a request
  Duration header_timeout = std::chrono::seconds(10);  ///< from its first byte to its last header
  Duration body_timeout = std::chrono::seconds(30);    ///< from there to the end of the body
  Duration write_timeout = std::chrono::seconds(30);   ///< for one answer
  uint32_t connections_max = 10'000;  ///< more get 503; three quarters of the descriptors at most
  Duration address_in_use_patience = std::chrono::seconds(3);  ///< how long init tries to listen

  /// The port that was picked, for those started again from the same options.
  std::shared_ptr<Atomic<uint16_t>> picked_port = std::make_shared<Atomic<uint16_t>>();
};

/// What the server asks the application. The first two run in the connection's process.
struct HttpService {
  /// The answer to a whole request. May wait; other connections are not held up.
  std::function<Async<HttpResponse>(HttpRequest)> handle;
  /// Looks at a request before its body is read and may refuse it: nothing to say, go on.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> check_head = nullptr;
  /// Told of each connection that is turned away because there are too many. Runs in the acceptor's
  /// process: it must be quick.
  std::function<void()> refused = nullptr;
};

/// call(server, HttpAddress{}): where it listens.
struct HttpAddress {
  using Reply = Address;
};
/// call(server, HttpConnections{}): how many connections are open.
struct HttpConnections {
  using Reply = uint64_t;
};

namespace internal {
struct HttpShared;
struct HttpConnectionState;
/// Counts one connection for as long as it lives, in whatever hands.
class HttpPlace {
 public:
  explicit HttpPlace(std::shared_ptr<HttpShared> shared);
  HttpPlace(const HttpPlace&) = delete;
  HttpPlace& operator=(const HttpPlace&) = delete;
  ~HttpPlace();

 private:
  std::shared_ptr<HttpShared> shared_;
};
/// The acceptor's message for each connection.
struct HttpAccepted {
  Socket socket;
  std::shared_ptr<HttpPlace> place;
  bool refused = false;
};
}  // namespace internal

class HttpServer {
 public:
  struct Args {
    HttpOptions options = {};
    HttpService service;
  };
  using Info = Protocol<internal::HttpAccepted>;

  explicit HttpServer(Args args);

  Async<Init> init();
  Address handle_call(HttpAddress) { return address_; }
  uint64_t handle_call(HttpConnections) { return connections_.size(); }
  void handle_info(internal::HttpAccepted accepted);
  CastResult handle_info(ExitMessage message);
  Async<void> terminate(ExitReason reason);

 private:
  bool forget(const ExitMessage& message);
  void end_connections(int phase);

  std::shared_ptr<internal::HttpShared> shared_;
  Address address_;
  Pid acceptor_;
  std::unordered_map<uint64_t, std::shared_ptr<internal::HttpConnectionState>> connections_;
};

}  // namespace otp::io
