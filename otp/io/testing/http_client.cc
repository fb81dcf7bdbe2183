#include "otp/io/testing/http_client.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <stdexcept>
#include <variant>

namespace otp::io::testing {

namespace asio = boost::asio;
namespace http = boost::beast::http;

Async<HttpClient> HttpClient::connect(Address address) {
  auto made = co_await Socket::connect(std::move(address));
  if (auto* error = std::get_if<SystemError>(&made)) throw std::runtime_error(error->to_string());
  co_return HttpClient(std::get<Socket>(std::move(made)));
}

Async<HttpResponse> HttpClient::request(std::string method, std::string target, std::string body,
                                        HttpHeaders headers) {
  std::string text = method + " " + target + " HTTP/1.1\r\nHost: test\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  text += "\r\n" + body;
  co_await send(std::move(text));
  co_return co_await receive(method == "HEAD");
}

Async<void> HttpClient::send(std::string bytes) {
  const Transfer sent = co_await socket_.write(bytes, std::chrono::seconds(30));
  if (sent.error) throw std::runtime_error("write: " + sent.error.message());
}

Async<HttpResponse> HttpClient::receive(bool to_head, Timeout timeout) {
  http::response_parser<http::string_body> parser;
  parser.skip(to_head);
  parser.body_limit(boost::none);
  boost::beast::error_code error;
  while (!parser.is_done()) {
    while (!in_.empty() && !parser.is_done()) {
      in_.erase(0, parser.put(asio::buffer(in_), error));
      if (error == http::error::need_more) break;
      if (error) throw std::runtime_error("bad response: " + error.message());
    }
    if (parser.is_done()) break;
    char buffer[4096];
    const Transfer got = co_await socket_.read_some(buffer, timeout);
    if (got.error) throw std::runtime_error("read: " + got.error.message());
    if (got.at_end()) throw std::runtime_error("the connection ended within a response");
    in_.append(buffer, got.bytes);
  }
  HttpResponse response;
  auto& message = parser.get();
  response.status = static_cast<int>(message.result_int());
  response.body = std::move(message.body());
  response.close = !parser.keep_alive();
  for (const auto& field : message) {
    response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  co_return response;
}

Async<std::string> HttpClient::read_to_end(Timeout timeout) {
  std::string rest = std::move(in_);
  in_.clear();
  for (;;) {
    char buffer[4096];
    const Transfer got = co_await socket_.read_some(buffer, timeout);
    if (got.error == std::errc::timed_out) throw std::runtime_error("the server does not close");
    if (got.error || got.at_end()) co_return rest;
    rest.append(buffer, got.bytes);
  }
}

}  // namespace otp::io::testing
