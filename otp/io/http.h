#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// HTTP/1 messages as plain data.
namespace otp::io {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The value of the first header with that name, compared without regard to case.
std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;     ///< as sent: GET, HEAD, also words nobody knows
  std::string target;     ///< as sent, not decoded: /jobs?limit=2 or http://host/jobs
  int minor_version = 1;  ///< of HTTP/1.x
  HttpHeaders headers = {};
  std::string body = {};

  std::optional<std::string_view> header(std::string_view name) const {
    return find_header(headers, name);
  }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  /// Beside Content-Length, Date, Connection and Transfer-Encoding, which the server writes itself.
  HttpHeaders headers = {};
  bool close = false;  ///< the connection ends after it

  std::optional<std::string_view> header(std::string_view name) const {
    return find_header(headers, name);
  }
};

}  // namespace otp::io
