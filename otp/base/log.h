#pragma once

/// What the runtime and every library layer know of logging: levels, records, and the sink that a
/// System was given. Who writes where is otp/observe/logger.h's business.
///
///   otp::log(sink, otp::LogLevel::warning, "otp.scheduler", [&](otp::LogRecord& record) {
///     record.message = "a callback keeps its core";      // runs only when somebody listens
///     record.add("pid", pid.to_string());
///   });

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace otp {

/// How grave a record is, the gravest last. OTP: logger's levels, which are syslog's.
enum class LogLevel : uint8_t { debug, info, notice, warning, error, critical, alert, emergency };

constexpr std::string_view to_string(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info",     "notice", "warning",
                                         "error", "critical", "alert",  "emergency"};
  const auto index = static_cast<size_t>(level);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

/// The level with that name; nothing for any other spelling. Does not depend on the locale.
constexpr std::optional<LogLevel> log_level(std::string_view name) {
  for (uint8_t index = 0; index <= static_cast<uint8_t>(LogLevel::emergency); ++index) {
    const auto level = static_cast<LogLevel>(index);
    if (to_string(level) == name) return level;
  }
  return std::nullopt;
}

/// One detail of a record, as text.
struct LogField {
  std::string key;
  std::string value;
  bool is_number = false;  ///< the value is a JSON number, to be written without quotes
};

/// One thing that happened.
struct LogRecord {
  LogLevel level = LogLevel::info;
  /// The code that speaks: names separated by dots, as `otp.supervisor` or `bank.ledger`. Levels
  /// can be set per domain, for it and all below it. Must live as long as the program.
  std::string_view domain = {};
  std::chrono::system_clock::time_point time = {};
  std::chrono::steady_clock::time_point monotonic = {};
  /// For people; may have several lines. What machines look for belongs in fields.
  std::string message = {};
  std::vector<LogField> fields = {};

  LogRecord& add(std::string_view key, std::string value) {
    fields.push_back({std::string(key), std::move(value), false});
    return *this;
  }
  LogRecord& add(std::string_view key, int64_t value) {
    fields.push_back({std::string(key), std::to_string(value), true});
    return *this;
  }
};

/// Takes records. A System is given one when it is made and passes it on: there is no global sink.
///
/// Threads: any, at any time; enabled() is asked before each record and must be cheap.
class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink() = default;

  /// Whether a record of that kind would be kept. A message is only built after a yes.
  virtual bool enabled(LogLevel level, std::string_view domain) const noexcept = 0;

  /// Takes a record. Never waits for a reader, never throws; what it cannot keep it drops.
  virtual void log(LogRecord&& record) noexcept = 0;
};

/// The sink of those who want none.
class NullLogSink final : public LogSink {
 public:
  bool enabled(LogLevel, std::string_view) const noexcept override { return false; }
  void log(LogRecord&&) noexcept override {}
};

/// The message of a record whose builder threw.
inline constexpr std::string_view kUnbuiltMessage = "log: cannot say";

/// Logs what `build(LogRecord&)` fills in, with the present time; does not call it when nobody
/// listens. A builder that throws gives a record with kUnbuiltMessage.
template <class Build>
void log(LogSink& sink, LogLevel level, std::string_view domain, Build&& build) noexcept {
  if (!sink.enabled(level, domain)) [[likely]]
    return;
  LogRecord record;
  record.level = level;
  record.domain = domain;
  record.time = std::chrono::system_clock::now();
  record.monotonic = std::chrono::steady_clock::now();
  try {
    build(record);
  } catch (...) {
    record.message.assign(kUnbuiltMessage);  // shorter than what needs an allocation: cannot throw
    record.fields.clear();
    record.level = LogLevel::error;
  }
  sink.log(std::move(record));
}

}  // namespace otp
