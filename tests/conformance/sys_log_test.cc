#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "otp/observe/logger.h"

using namespace otp;
using namespace otp::observe;

namespace {

constexpr LogLevel kAll[] = {LogLevel::debug,   LogLevel::info,     LogLevel::notice,
                             LogLevel::warning, LogLevel::error,    LogLevel::critical,
                             LogLevel::alert,   LogLevel::emergency};

/// A logger with handlers of the given levels.
struct Fixture {
  std::vector<MemoryLogHandler*> handlers;
  std::unique_ptr<Logger> logger;

  Fixture(LogLevel level, const std::vector<LogLevel>& handler_levels) {
    std::vector<std::unique_ptr<LogHandler>> owned;
    for (LogLevel each : handler_levels) {
      auto handler = std::make_unique<MemoryLogHandler>(each);
      handlers.push_back(handler.get());
      owned.push_back(std::move(handler));
    }
    logger = std::make_unique<Logger>(level, std::move(owned));
  }
  /// Logs once at each level; how many builders ran.
  int log_all(std::string_view domain) {
    int built = 0;
    for (LogLevel level : kAll) {
      log(*logger, level, domain, [&](LogRecord& record) {
        ++built;
        record.message = std::string(to_string(level));
      });
    }
    return built;
  }
  /// The least level that `handler` was given, and no gap above it.
  std::string least(size_t handler) const {
    const auto records = handlers[handler]->records();
    if (records.empty()) return "none";
    CHECK(records.size() ==
          static_cast<size_t>(LogLevel::emergency) - static_cast<size_t>(records[0]->level) + 1);
    return records[0]->message;
  }
};

}  // namespace

TEST_CASE("SYS-011 the global level gates all that has no level of its own", "[sys]") {
  Fixture fixture(LogLevel::warning, {LogLevel::debug});
  CHECK(fixture.log_all("bank.ledger") == 5);
  CHECK(fixture.least(0) == "warning");
  fixture.logger->set_level(LogLevel::critical);
  CHECK(fixture.log_all("bank.ledger") == 3);
}

TEST_CASE("SYS-011 a module's level stands in place of the global one, both ways", "[sys]") {
  Fixture fixture(LogLevel::warning, {LogLevel::debug});
  REQUIRE(fixture.logger->set_domain_level("bank", LogLevel::debug));
  CHECK(fixture.log_all("bank.ledger") == 8);
  CHECK(fixture.log_all("bakery") == 5);
  REQUIRE(fixture.logger->set_domain_level("bank.ledger", LogLevel::error));
  CHECK(fixture.log_all("bank.ledger") == 4);
  CHECK(fixture.log_all("bank.teller") == 8);
  REQUIRE(fixture.logger->set_domain_level("bank.ledger", std::nullopt));
  CHECK(fixture.log_all("bank.ledger") == 8);
}

TEST_CASE("SYS-011 a handler's own level comes last", "[sys]") {
  Fixture fixture(LogLevel::notice, {LogLevel::error, LogLevel::debug});
  CHECK(fixture.log_all("bank") == 6);
  CHECK(fixture.least(0) == "error");
  CHECK(fixture.least(1) == "notice");
}

TEST_CASE("SYS-011 a message that no handler would take is never built", "[sys]") {
  Fixture fixture(LogLevel::debug, {LogLevel::error, LogLevel::critical});
  CHECK(fixture.log_all("bank") == 4);
  fixture.handlers[0]->set_level(LogLevel::emergency);
  CHECK(fixture.log_all("bank") == 3);
}
