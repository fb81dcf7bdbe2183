#pragma once

/// The logger: decides by level who hears what, and hands records to its handlers.
///
///   auto out = start_fd_log_handler({.fd = STDOUT_FILENO, .format = LogFormat::json});
///   std::vector<std::unique_ptr<LogHandler>> handlers;
///   handlers.push_back(std::move(out).value());
///   Logger logger(LogLevel::notice, std::move(handlers));
///   System system({.log = &logger, ...});
///   ...
///   logger.stop(2s);                                  // flushes; in time even if nobody reads
///
/// Levels, as in OTP: a record passes when its level is at least that of its domain, or the global
/// level where no level is set for the domain or one above it; then each handler applies its own.
/// A message that no one would take is never built.
///
/// OTP: logger. Differs: domains are dotted names given by the code that logs, not module atoms; no
/// filters; handlers are given at the start.

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/log.h"
#include "otp/observe/log_handler.h"

namespace otp::observe {

class Logger final : public LogSink {
 public:
  /// A longer message or field is cut, and says so.
  static constexpr size_t kMessageBytesMax = size_t{64} << 10;
  static constexpr size_t kFieldBytesMax = size_t{4} << 10;
  static constexpr size_t kFieldsMax = 64;
  /// Domains that had a level of their own at one time or another.
  static constexpr size_t kDomainsMax = 256;

  Logger(LogLevel level, std::vector<std::unique_ptr<LogHandler>> handlers);

  LogLevel level() const noexcept { return level_.load(std::memory_order_relaxed); }
  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }

  /// Sets the level of a domain and all below it: `otp` is above `otp.supervisor`; the longest name
  /// with a level counts. Nothing: takes it back.
  /// Returns: false when kDomainsMax names are in use.
  bool set_domain_level(std::string_view domain, std::optional<LogLevel> level);

  struct DomainLevel {
    std::string domain;
    LogLevel level;
  };
  /// Those with a level of their own, in the order in which they first had one.
  std::vector<DomainLevel> domain_levels() const;

  const std::vector<std::unique_ptr<LogHandler>>& handlers() const { return handlers_; }

  bool enabled(LogLevel level, std::string_view domain) const noexcept override;
  void log(LogRecord&& record) noexcept override;

  /// Waits until everything logged before is written, or counted as dropped, by all handlers.
  /// Returns: false when it took longer than `timeout`.
  bool flush(std::chrono::milliseconds timeout) noexcept;
  /// As flush(), and ends the handlers' threads. Records logged later are dropped.
  bool stop(std::chrono::milliseconds timeout) noexcept;

  /// Of all handlers together.
  LogStats stats() const noexcept;

 private:
  static constexpr uint8_t kInherit = 255;

  struct Domain {
    std::string name;  // constant once published by domain_count_
    std::atomic<uint8_t> level{kInherit};
  };

  LogLevel level_of(std::string_view domain) const noexcept;

  std::vector<std::unique_ptr<LogHandler>> handlers_;  // constant after construction
  std::atomic<LogLevel> level_;    // relaxed: a level that acts a moment late does no harm
  std::atomic<uint64_t> lost_{0};  // relaxed: a count. Records for which there was no memory
  std::mutex domains_mutex_;       // of those who set levels
  std::array<Domain, kDomainsMax> domains_;
  std::atomic<size_t> domain_count_{0};  // release when a name is added, acquire by readers
};

}  // namespace otp::observe
