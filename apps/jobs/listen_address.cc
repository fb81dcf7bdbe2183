#include "apps/jobs/listen_address.h"

#include <arpa/inet.h>

namespace jobs {

bool is_loopback(const otp::io::Address& address) {
  in_addr four{};
  if (::inet_pton(AF_INET, address.host.c_str(), &four) == 1) {
    return (ntohl(four.s_addr) >> 24) == 127;
  }
  in6_addr six{};
  if (::inet_pton(AF_INET6, address.host.c_str(), &six) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

}  // namespace jobs
