#include "otp/io/internal/http_connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <ctime>
#include <exception>

#include "otp/runtime/fault.h"
#include "otp/runtime/runtime_log.h"

namespace otp::io::internal {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using otp::internal::self_process;

namespace {

constexpr size_t kReadBytes = 4096;  // taken at once while a header is being read
constexpr size_t kBodyReadBytes = 16 << 10;
constexpr size_t kLingerBytes = 1 << 20;
constexpr auto kLinger = std::chrono::seconds(1);

int64_t time_now() { return self_process().system().now(); }
Timeout until(int64_t deadline) { return Timeout(Duration(deadline - time_now())); }

bool may_have_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string date_text() {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm at{};
  ::gmtime_r(&now, &at);
  char text[40];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[at.tm_wday],
                at.tm_mday, kMonths[at.tm_mon], at.tm_year + 1900, at.tm_hour, at.tm_min,
                at.tm_sec);
  return text;
}

bool is_written_by_server(std::string_view name) {
  static constexpr std::string_view kOurs[] = {"Content-Length", "Date", "Connection",
                                               "Transfer-Encoding"};
  return std::ranges::any_of(kOurs, [&](std::string_view ours) {
    return beast::iequals({ours.data(), ours.size()}, {name.data(), name.size()});
  });
}

/// A header that would end early and begin another one is no header.
bool is_safe(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

struct Framing {
  int minor_version = 1;
  bool keep = true;
  bool head_only = false;
};

std::string serialize(const HttpResponse& response, const Framing& framing) {
  const bool body = may_have_body(response.status);
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text.append(reason.data(), reason.size());
  text += "\r\nDate: " + date_text() + "\r\n";
  if (body) text += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  if (!framing.keep) text += "Connection: close\r\n";
  if (framing.keep && framing.minor_version == 0) text += "Connection: keep-alive\r\n";
  for (const auto& [name, value] : response.headers) {
    if (!is_written_by_server(name)) text += name + ": " + value + "\r\n";
  }
  text += "\r\n";
  if (body && !framing.head_only) text += response.body;
  return text;
}

HttpResponse refusal(int status, std::string_view why) {
  return {.status = status,
          .body = std::string(why) + "\n",
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .close = true};
}

HttpResponse parse_failure(const beast::error_code& error) {
  if (error == http::error::header_limit) return refusal(431, "the headers are too large");
  if (error == http::error::body_limit) return refusal(413, "the body is too large");
  if (error == http::error::bad_version) return refusal(505, "expected HTTP/1.1 or HTTP/1.0");
  return refusal(400, "bad request: " + error.message());
}

/// One connection: reads a request, has it answered, and so on.
class HttpConnection {
 public:
  HttpConnection(Socket socket, std::shared_ptr<HttpShared> shared,
                 std::shared_ptr<HttpConnectionState> state)
      : socket_(std::move(socket)), shared_(std::move(shared)), state_(std::move(state)) {}

  Async<void> run() {
    while (!shared_->draining.load(acquire)) {
      framing_ = {};
      parser_.emplace();
      parser_->header_limit(static_cast<uint32_t>(options().header_bytes_max));
      parser_->body_limit(options().body_bytes_max);
      std::optional<HttpResponse> refused = co_await read_header();
      if (gone_) co_return;
      HttpRequest request;
      if (!refused) {
        request = head_of_request();
        refused = co_await read_body(request);
        if (gone_) co_return;
      }
      enter(HttpConnectionState::handling);
      HttpResponse response;
      if (refused) {
        response = std::move(*refused);
      } else {
        response = co_await handle(std::move(request));
      }
      enter(HttpConnectionState::writing);
      const bool draining = shared_->draining.load(acquire);
      framing_.keep = framing_.keep && !response.close && !draining;
      const std::string text = serialize(response, framing_);
      response = {};  // a client that does not read keeps one copy, not two
      const Duration limit = options().write_timeout;
      const Transfer written =
          co_await socket_.write(text, draining ? std::min<Duration>(limit, kLastWrite) : limit);
      if (written.error) co_return socket_.reset();
      enter(HttpConnectionState::reading);
      if (!framing_.keep) co_return co_await linger();
    }
  }

  Async<void> send_last(std::string_view text) {
    const Transfer written = co_await socket_.write(text, kLinger);
    if (written.ok()) co_await linger();
  }

  /// The answer has gone; what the client still sends would make the system drop it again.
  Async<void> linger() {
    socket_.shutdown_send();
    const int64_t deadline = time_now() + Duration(kLinger).count();
    in_.resize(kReadBytes);
    for (size_t taken = 0; taken < kLingerBytes;) {
      const Transfer got = co_await socket_.read_some(in_, until(deadline));
      if (got.error || got.at_end()) co_return;
      taken += got.bytes;
    }
  }

 private:
  const HttpOptions& options() const { return shared_->options; }
  void enter(HttpConnectionState::Phase phase) { state_->phase.store(phase, release); }

  /// Appends what comes to in_. False: nothing more comes, and gone_ says whether there is nobody
  /// to answer.
  Async<bool> read_more(int64_t deadline) {
    const size_t had = in_.size();
    in_.resize(had + (parser_->is_header_done() ? kBodyReadBytes : kReadBytes));
    const Transfer got =
        co_await socket_.read_some(std::span<char>(in_).subspan(had), until(deadline));
    in_.resize(had + got.bytes);
    gone_ = got.error ? got.error != std::errc::timed_out : got.at_end();
    co_return got.bytes > 0;
  }

  /// Feeds the parser with what is there. True: it wants more.
  bool parse(beast::error_code& error) {
    error = {};
    while (!in_.empty() && !parser_->is_done()) {
      const bool header = !parser_->is_header_done();
      const size_t used = parser_->put(asio::buffer(in_), error);
      in_.erase(0, used);
      if (error == http::error::need_more) {
        error = {};
        return true;
      }
      if (error || (header && parser_->is_header_done())) return false;
    }
    return !parser_->is_done();
  }

  /// Waits for the first of a request. Some send an empty line after a body: it may come in pieces,
  /// and nothing more for long.
  Async<bool> await_request() {
    const int64_t deadline = time_now() + options().idle_timeout.count();
    for (;;) {
      while (in_.starts_with("\r\n")) in_.erase(0, 2);
      if (!in_.empty() && in_ != "\r") co_return true;
      if (!co_await read_more(deadline)) co_return false;
    }
  }

  /// Nothing: the header is there. Else what to answer, unless gone_.
  Async<std::optional<HttpResponse>> read_header() {
    if (!co_await await_request()) {
      gone_ = true;  // an idle connection ends without a word
      co_return std::nullopt;
    }
    const int64_t deadline = time_now() + options().header_timeout.count();
    beast::error_code error;
    while (parse(error) && !parser_->is_header_done()) {
      if (!co_await read_more(deadline)) {
        co_return refusal(408, "the header did not come in time");
      }
    }
    if (error) {
      framing_.head_only = parser_->get().method() == http::verb::head;
      co_return parse_failure(error);
    }
    co_return std::nullopt;
  }

  HttpRequest head_of_request() {
    const auto& message = parser_->get();
    HttpRequest request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    request.minor_version = static_cast<int>(message.version() % 10);
    for (const auto& field : message) {
      request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    framing_.minor_version = request.minor_version;
    framing_.keep = parser_->keep_alive();
    framing_.head_only = message.method() == http::verb::head;
    return request;
  }

  /// What is wrong with the head by the rules of HTTP, or to the application.
  std::optional<HttpResponse> check_head(const HttpRequest& request) {
    const auto& message = parser_->get();
    const size_t hosts = message.count(http::field::host);
    if (hosts > 1 || (hosts == 0 && request.minor_version > 0)) {
      return refusal(400, "expected one Host header");
    }
    if (message.count(http::field::transfer_encoding) > 0) {
      if (request.minor_version == 0) return refusal(400, "HTTP/1.0 has no Transfer-Encoding");
      if (!beast::iequals(message[http::field::transfer_encoding], "chunked")) {
        return refusal(501, "a Transfer-Encoding other than chunked");
      }
    }
    if (shared_->service.check_head) {
      if (auto refused = shared_->service.check_head(request)) {
        if (!parser_->is_done() && has_body()) refused->close = true;  // it stays unread
        return refused;
      }
    }
    if (expects() && !beast::iequals(message[http::field::expect], "100-continue")) {
      return refusal(417, "the only expectation known is 100-continue");
    }
    return std::nullopt;
  }
  bool has_body() { return parser_->chunked() || parser_->content_length().value_or(0) > 0; }
  bool expects() {
    return framing_.minor_version > 0 && parser_->get().count(http::field::expect) > 0;
  }

  Async<std::optional<HttpResponse>> read_body(HttpRequest& request) {
    std::optional<HttpResponse> refused = check_head(request);
    if (refused) co_return refused;
    if (expects() && in_.empty() && has_body()) {
      const Transfer sent =
          co_await socket_.write("HTTP/1.1 100 Continue\r\n\r\n", options().write_timeout);
      gone_ = static_cast<bool>(sent.error);
      if (gone_) co_return std::nullopt;
    }
    const int64_t deadline = time_now() + options().body_timeout.count();
    beast::error_code error;
    while (!parser_->is_done()) {
      if (!parse(error) || error) break;
      if (!co_await read_more(deadline)) co_return refusal(408, "the body did not come in time");
    }
    if (error) co_return parse_failure(error);
    request.body = std::move(parser_->get().body());
    co_return std::nullopt;
  }

  Async<HttpResponse> handle(HttpRequest request) {
    std::exception_ptr thrown;
    try {
      HttpResponse response = co_await shared_->service.handle(std::move(request));
      const bool safe = std::ranges::all_of(response.headers, [](const auto& header) {
        return is_safe(header.first) && is_safe(header.second);
      });
      if (!safe) throw std::invalid_argument("a response header with a line break");
      co_return response;
    } catch (...) {
      thrown = std::current_exception();
    }
    log_failure(thrown);
    co_return HttpResponse{.status = 500,
                           .body = "internal error\n",
                           .headers = {{"Content-Type", "text/plain; charset=utf-8"}}};
  }
  void log_failure(const std::exception_ptr& thrown) {
    LogSink* log = self_process().system().log();
    if (log == nullptr) return;
    otp::internal::log_runtime(
        log, LogLevel::error,
        "http: a handler failed with " + otp::internal::reason_of(thrown).to_string());
  }

  Socket socket_;
  const std::shared_ptr<HttpShared> shared_;
  const std::shared_ptr<HttpConnectionState> state_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string in_;  // read and not yet parsed
  Framing framing_;
  bool gone_ = false;
};

}  // namespace

Async<void> serve_connection(HttpAccepted accepted, std::shared_ptr<HttpShared> shared,
                             std::shared_ptr<HttpConnectionState> state) {
  HttpConnection connection(std::move(accepted.socket), std::move(shared), std::move(state));
  co_await connection.run();
}

Async<void> refuse_connection(HttpAccepted accepted) {
  const std::string text = serialize(refusal(503, "too many connections"), {.keep = false});
  HttpConnection connection(std::move(accepted.socket), nullptr, nullptr);
  co_await connection.send_last(text);
}

}  // namespace otp::io::internal
