#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "otp/config/describe.h"

namespace jobs {

/// Where the service listens: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`. Port 0: a free one is
/// picked.
struct ListenAddress {
  std::string host = "127.0.0.1";  ///< a numeric address
  uint16_t port = 0;

  static std::optional<ListenAddress> parse(std::string_view text);
  /// Only programs on this machine can reach it.
  bool is_loopback() const;
  std::string to_string() const;
};

}  // namespace jobs

template <>
struct otp::ConfigText<jobs::ListenAddress> {
  static constexpr std::string_view expected = "an address such as 127.0.0.1:8080 or [::1]:0";
  static std::optional<jobs::ListenAddress> parse(std::string_view text) {
    return jobs::ListenAddress::parse(text);
  }
};
