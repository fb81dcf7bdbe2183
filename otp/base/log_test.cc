#include "otp/base/log.h"

#include <catch2/catch.hpp>
#include <stdexcept>

namespace {

class Keeper final : public otp::LogSink {
 public:
  bool enabled(otp::LogLevel level, std::string_view) const noexcept override {
    return level >= otp::LogLevel::notice;
  }
  void log(otp::LogRecord&& record) noexcept override { kept.push_back(std::move(record)); }
  std::vector<otp::LogRecord> kept;
};

}  // namespace

TEST_CASE("a message nobody wants is never built", "[log]") {
  Keeper sink;
  int built = 0;
  otp::log(sink, otp::LogLevel::info, "otp.test", [&](otp::LogRecord&) { ++built; });
  CHECK(built == 0);
  otp::log(sink, otp::LogLevel::notice, "otp.test", [&](otp::LogRecord& record) {
    ++built;
    record.message = "hello";
    record.add("count", int64_t{-3}).add("name", std::string("x"));
  });
  CHECK(built == 1);
  REQUIRE(sink.kept.size() == 1);
  const otp::LogRecord& record = sink.kept[0];
  CHECK(record.message == "hello");
  CHECK(record.domain == "otp.test");
  CHECK(record.time.time_since_epoch().count() > 0);
  REQUIRE(record.fields.size() == 2);
  CHECK(record.fields[0].value == "-3");
  CHECK(record.fields[0].is_number);
  CHECK_FALSE(record.fields[1].is_number);
}

TEST_CASE("a builder that throws gives a record that says so", "[log]") {
  Keeper sink;
  otp::log(sink, otp::LogLevel::notice, "otp.test", [&](otp::LogRecord& record) {
    record.message = "half";
    throw std::runtime_error("no");
  });
  REQUIRE(sink.kept.size() == 1);
  CHECK(sink.kept[0].message == otp::kUnbuiltMessage);
  CHECK(sink.kept[0].level == otp::LogLevel::error);
}

TEST_CASE("levels have OTP's names and order", "[log]") {
  CHECK(otp::log_level("notice") == otp::LogLevel::notice);
  CHECK_FALSE(otp::log_level("Notice").has_value());
  CHECK_FALSE(otp::log_level("").has_value());
  CHECK(otp::to_string(otp::LogLevel::emergency) == "emergency");
  CHECK(otp::LogLevel::debug < otp::LogLevel::emergency);
}
