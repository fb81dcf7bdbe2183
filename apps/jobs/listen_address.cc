#include "apps/jobs/listen_address.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstring>

namespace jobs {

std::optional<ListenAddress> ListenAddress::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  ListenAddress address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  address.host = host == "localhost" ? "127.0.0.1" : std::string(host);
  in6_addr bytes{};
  const int family = bracketed ? AF_INET6 : AF_INET;
  if (::inet_pton(family, address.host.c_str(), &bytes) != 1) return std::nullopt;
  return address;
}

bool ListenAddress::is_loopback() const {
  in_addr four{};
  if (::inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  if (::inet_pton(AF_INET6, host.c_str(), &six) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

std::string ListenAddress::to_string() const {
  const bool six = host.find(':') != std::string::npos;
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace jobs
