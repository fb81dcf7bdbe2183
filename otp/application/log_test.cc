#include "otp/application/log.h"

#include <catch2/catch.hpp>
#include <string>

#include "otp/async/async.h"
#include "otp/runtime/system.h"

namespace {

class LastRecord final : public otp::LogSink {
 public:
  bool enabled(otp::LogLevel level, std::string_view) const noexcept override {
    return level >= otp::LogLevel::notice;
  }
  void log(otp::LogRecord&& record) noexcept override { last = std::move(record); }

  otp::LogRecord last;  // read when the System is gone
};

otp::Async<void> talk() {
  otp::log(otp::LogLevel::notice, "bank.ledger", "the books are closed");
  otp::log(otp::LogLevel::debug, "bank.ledger", "nobody listens");
  co_return;
}

}  // namespace

TEST_CASE("a process says something in the log of its program", "[application][log]") {
  LastRecord sink;
  {
    otp::SystemOptions options;
    options.log = &sink;
    otp::System system(options);
    system.run(talk);
  }
  CHECK(sink.last.level == otp::LogLevel::notice);
  CHECK(sink.last.domain == "bank.ledger");
  CHECK(sink.last.message == "the books are closed");
}

TEST_CASE("without a log nothing is said", "[application][log]") {
  otp::System system;
  system.run(talk);
}
