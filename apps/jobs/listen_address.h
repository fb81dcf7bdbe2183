#pragma once

#include <optional>
#include <string_view>

#include "otp/config/describe.h"
#include "otp/io/socket.h"

namespace jobs {

/// Only programs on this machine can reach it.
bool is_loopback(const otp::io::Address& address);

}  // namespace jobs

template <>
struct otp::ConfigText<otp::io::Address> {
  static constexpr std::string_view expected = "an address such as 127.0.0.1:8080 or [::1]:0";
  static std::optional<otp::io::Address> parse(std::string_view text) {
    return otp::io::Address::parse(text);
  }
};
