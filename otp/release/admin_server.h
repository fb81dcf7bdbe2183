#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "otp/base/json.h"

namespace otp::release {

/// One request of an operator.
struct AdminRequest {
  std::string command;
  json::object args = {};
};

/// The answer: a result, or one line that says why there is none.
struct AdminResponse {
  bool ok = true;
  json::value result;
  std::string error;

  static AdminResponse success(json::value result) {
    return {.ok = true, .result = std::move(result), .error = ""};
  }
  static AdminResponse text(std::string_view result) {
    return {.ok = true, .result = json::string(result), .error = ""};
  }
  static AdminResponse failure(std::string why) {
    return {.ok = false, .result = nullptr, .error = std::move(why)};
  }
};

/// The right and duty to answer one request, once, from any thread. Letting it go unanswered
/// answers "the node gave no answer"; an answer that comes after AdminLimits::answer_within is
/// dropped.
class AdminReply {
 public:
  struct Ticket;
  explicit AdminReply(std::shared_ptr<Ticket> ticket);
  AdminReply(AdminReply&&) noexcept;
  AdminReply& operator=(AdminReply&&) noexcept;
  ~AdminReply();

  void answer(AdminResponse response);

 private:
  std::shared_ptr<Ticket> ticket_;
};

struct AdminLimits {
  size_t clients_max = 16;                          ///< one more is told so and closed
  size_t line_bytes_max = 64 * 1024;                ///< a longer request ends its connection
  size_t answer_bytes_max = 64u << 20;              ///< a longer answer is replaced by an error
  std::chrono::milliseconds idle_max{30'000};       ///< a silent or unreading client is closed
  std::chrono::milliseconds answer_within{10'000};  ///< then the client hears that the node is busy
};

/// A callback for on_later() that answers with what `callback` returns, or with its exception's
/// text.
std::function<void(AdminRequest, AdminReply)> answer_at_once(
    std::function<AdminResponse(const AdminRequest&)> callback);

/// Serves the admin socket from an OS thread of its own, so that `status` and `stop` are answered
/// even when the node's own threads are stuck.
///
///     AdminServer admin;
///     admin.on("ping", [](const AdminRequest&) { return AdminResponse::success("pong"); });
///     std::string error = admin.open(layout.socket_path());   // before other threads start
///     admin.start();
///
/// Threads: every function from any thread. Callbacks run on the server's thread; one that throws
/// answers with the exception's text.
class AdminServer {
 public:
  AdminServer();
  explicit AdminServer(AdminLimits limits);
  ~AdminServer();  ///< stop()
  AdminServer(const AdminServer&) = delete;

  /// For commands that answer at once from what is at hand: the callback must not wait for
  /// anything.
  void on(std::string command, std::function<AdminResponse(const AdminRequest&)> callback);

  /// For commands that must ask the node: the callback hands the reply on and returns.
  void on_later(std::string command, std::function<void(AdminRequest, AdminReply)> callback);

  /// Binds the socket. Returns an error line or nothing. See listen_at().
  std::string open(const std::string& path);

  /// Starts the thread. Returns an error line (no more threads) or nothing.
  std::string start();

  /// Flushes what is written, closes the clients, ends the thread and removes the socket.
  /// Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace otp::release
