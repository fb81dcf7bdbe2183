// Server types for the tests of otp/config: plain classes, which never run.

#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/base/bytes.h"
#include "otp/base/secret.h"
#include "otp/base/timeout.h"
#include "otp/config/check.h"

namespace bank {

enum class Rounding { up, down, half_even };

/// Stands for otp::Name<S>: a reference to a child that runs S.
template <class S>
class NameOf {
 public:
  using ServerClass = S;
  NameOf() = default;
  explicit NameOf(std::string name) : name_(std::move(name)) {}
  const std::string& text() const { return name_; }

 private:
  std::string name_;
};

class Ledger {
 public:
  struct Args {
    otp::Required<std::string> currency;
    int64_t opening_cents = 0;
    bool audited = false;
    uint8_t tellers = 1;
    Rounding rounding = Rounding::half_even;
    otp::Secret password;
  };
};

class Teller {
 public:
  struct Args {
    otp::Required<NameOf<Ledger>> ledger;
    std::optional<NameOf<Ledger>> second;
    otp::Timeout timeout = std::chrono::seconds(5);
  };
};

class Audit {
 public:
  struct Rule {
    otp::Required<std::string> text;
    int32_t weight = 1;
  };
  struct Args {
    std::chrono::milliseconds every{1000};
    otp::Bytes log_size = otp::mebibytes(1);
    std::vector<Rule> rules = {{.text = "default"}};
    std::map<std::string, Rule> named;
  };
};

class Clock {};

struct Limits {
  int32_t daily = 10;
  std::optional<double> factor;
};

struct Settings {
  std::string listen = "127.0.0.1:8080";
  Limits limits;
  otp::Secret token;
  std::vector<std::string> hosts;
};

inline otp::config::ApplicationDecl application() {
  using otp::config::describe_server;
  return {.name = "bank",
          .servers = {describe_server<Ledger>(), describe_server<Teller>(),
                      describe_server<Audit>(), describe_server<Clock>()},
          .settings = otp::config::record_type<Settings>()};
}

inline otp::config::CheckResult check(std::string_view yaml,
                                      const otp::config::Environment& environment = {},
                                      otp::config::CheckOptions options = {}) {
  return otp::config::check(yaml, "bank.yaml", {application()}, environment, options);
}

}  // namespace bank
