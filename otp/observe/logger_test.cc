#include "otp/observe/logger.h"

#include <catch2/catch.hpp>

using namespace otp::observe;
using namespace std::chrono_literals;
using otp::LogLevel;

namespace {

struct Fixture {
  explicit Fixture(LogLevel global, std::vector<LogLevel> handler_levels) {
    std::vector<std::unique_ptr<LogHandler>> handlers;
    for (LogLevel level : handler_levels) {
      auto handler = std::make_unique<MemoryLogHandler>(level);
      memory.push_back(handler.get());
      handlers.push_back(std::move(handler));
    }
    logger = std::make_unique<Logger>(global, std::move(handlers));
  }

  // Returns whether the message was built.
  bool log(LogLevel level, std::string_view domain) {
    bool built = false;
    otp::log(*logger, level, domain, [&](otp::LogRecord& record) {
      built = true;
      record.message = "m";
    });
    return built;
  }

  size_t kept(size_t handler) const { return memory[handler]->records().size(); }

  std::vector<MemoryLogHandler*> memory;
  std::unique_ptr<Logger> logger;
};

}  // namespace

// OTP: logger_SUITE:set_module_level
TEST_CASE("a domain's level overrides the global one, both ways", "[logger]") {
  Fixture fixture(LogLevel::notice, {LogLevel::debug});
  Logger& logger = *fixture.logger;
  REQUIRE(logger.set_domain_level("bank", LogLevel::debug));
  CHECK(fixture.log(LogLevel::debug, "bank"));
  CHECK(fixture.log(LogLevel::debug, "bank.ledger"));
  CHECK_FALSE(fixture.log(LogLevel::debug, "banking"));
  CHECK_FALSE(fixture.log(LogLevel::debug, "other.bank"));
  REQUIRE(logger.set_domain_level("bank.ledger", LogLevel::critical));
  CHECK_FALSE(fixture.log(LogLevel::error, "bank.ledger"));
  CHECK_FALSE(fixture.log(LogLevel::error, "bank.ledger.book"));
  CHECK(fixture.log(LogLevel::debug, "bank.teller"));
  REQUIRE(logger.domain_levels().size() == 2);
  CHECK(logger.domain_levels()[1].domain == "bank.ledger");
  REQUIRE(logger.set_domain_level("bank.ledger", std::nullopt));
  CHECK(fixture.log(LogLevel::debug, "bank.ledger"));
  REQUIRE(logger.set_domain_level("bank", std::nullopt));
  CHECK_FALSE(fixture.log(LogLevel::debug, "bank.ledger"));
  CHECK(logger.domain_levels().empty());
}

TEST_CASE("a handler's level comes last", "[logger]") {
  Fixture fixture(LogLevel::debug, {LogLevel::warning, LogLevel::error});
  CHECK_FALSE(fixture.log(LogLevel::notice, "bank"));  // no handler would take it
  CHECK(fixture.log(LogLevel::warning, "bank"));
  CHECK(fixture.log(LogLevel::error, "bank"));
  CHECK(fixture.kept(0) == 2);
  CHECK(fixture.kept(1) == 1);
  fixture.logger->handlers()[1]->set_level(LogLevel::debug);
  CHECK(fixture.log(LogLevel::debug, "bank"));
  CHECK(fixture.kept(1) == 2);
}

TEST_CASE("the number of domains with a level is limited, names can be used again", "[logger]") {
  Fixture fixture(LogLevel::notice, {LogLevel::debug});
  for (size_t index = 0; index < Logger::kDomainsMax; ++index) {
    REQUIRE(fixture.logger->set_domain_level("d" + std::to_string(index), LogLevel::debug));
  }
  CHECK_FALSE(fixture.logger->set_domain_level("one_more", LogLevel::debug));
  CHECK(fixture.logger->set_domain_level("d7", std::nullopt));
  CHECK(fixture.logger->set_domain_level("d7", LogLevel::error));
  CHECK(fixture.logger->set_domain_level("never_set", std::nullopt));
}

TEST_CASE("R-027 a huge message or field is cut and says so", "[logger]") {
  Fixture fixture(LogLevel::debug, {LogLevel::debug});
  otp::log(*fixture.logger, LogLevel::error, "bank", [](otp::LogRecord& record) {
    record.message.assign(10'000'000, 'x');
    record.message[Logger::kMessageBytesMax - 1] = '\xc3';
    record.message[Logger::kMessageBytesMax] = '\xa9';
    record.add("big", std::string(1'000'000, 'y'));
    for (int index = 0; index < 1000; ++index) record.add("k" + std::to_string(index), "v");
  });
  const auto record = fixture.memory[0]->records().at(0);
  CHECK(record->message.size() < Logger::kMessageBytesMax + 100);
  CHECK_THAT(record->message, Catch::EndsWith("x... (9934465 more bytes)"));
  CHECK(record->fields.size() == Logger::kFieldsMax);
  CHECK(record->fields[0].value.size() < Logger::kFieldBytesMax + 100);
}
