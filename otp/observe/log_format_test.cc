#include "otp/observe/log_format.h"

#include <catch2/catch.hpp>
#include <locale>

#include "otp/base/utf8.h"
#include "otp/observe/json_text.h"

using namespace otp::observe;

namespace {

otp::LogRecord example() {
  otp::LogRecord record;
  record.level = otp::LogLevel::error;
  record.domain = "otp.supervisor";
  record.time = std::chrono::sys_days(std::chrono::year(2026) / 11 / 30) + std::chrono::hours(14) +
                std::chrono::minutes(5) + std::chrono::microseconds(9'000'123);
  record.message = "child ended";
  record.add("id", "ledger").add("count", int64_t{1234567});
  return record;
}

std::string text_of(const otp::LogRecord& record) {
  std::string out;
  append_record(&out, record, LogFormat::text);
  return out;
}

std::string json_of(const otp::LogRecord& record) {
  std::string out;
  append_record(&out, record, LogFormat::json);
  return out;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(&out, text);
  return out;
}

// Gives numbers commas and groups to everything that asks the locale.
class Grouping : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE("a text line has time, level, domain, message and fields", "[logger]") {
  CHECK(text_of(example()) ==
        "2026-11-30T14:05:09.000123Z error    otp.supervisor: child ended id=ledger "
        "count=1234567\n");
}

TEST_CASE("a JSON line has the same, numbers as numbers", "[logger]") {
  CHECK(json_of(example()) ==
        "{\"time\":\"2026-11-30T14:05:09.000123Z\",\"level\":\"error\","
        "\"domain\":\"otp.supervisor\",\"message\":\"child ended\","
        "\"fields\":{\"id\":\"ledger\",\"count\":1234567}}\n");
}

TEST_CASE("further lines of a message are indented, so nobody can forge a record", "[logger]") {
  otp::LogRecord record = example();
  record.fields.clear();
  record.message = "crash\n2026-11-30T14:05:09.000123Z error    forged\n\n";
  record.add("why", "two\nlines").add("empty", "").add("quoted", "say \"a\\b\"");
  CHECK(text_of(record) ==
        "2026-11-30T14:05:09.000123Z error    otp.supervisor: crash why=\"two\\nlines\" "
        "empty=\"\" quoted=\"say \\\"a\\\\b\\\"\"\n"
        "    2026-11-30T14:05:09.000123Z error    forged\n");
}

TEST_CASE("R-033 records of any bytes are valid text and valid JSON lines", "[logger]") {
  otp::LogRecord record = example();
  record.message.clear();
  for (int byte = 0; byte < 256; ++byte) record.message += static_cast<char>(byte);
  record.message += "\xed\xa0\x80\xc2\x9b\xe2\x80\xa8";
  record.add("raw", record.message).add(record.message, "x");
  const std::string json = json_of(record);
  CHECK(otp::is_valid_utf8(json));
  CHECK(std::count(json.begin(), json.end(), '\n') == 1);
  for (char letter : json) CHECK((static_cast<unsigned char>(letter) >= 0x20 || letter == '\n'));
  const std::string text = text_of(record);
  CHECK(otp::is_valid_utf8(text));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\\x1b") != std::string::npos);
  CHECK(text.find("\xc2\x9b") == std::string::npos);
}

TEST_CASE("R-033 JSON strings escape what must be escaped", "[logger]") {
  CHECK(json_string("a\"b\\c\n\t\r") == "\"a\\\"b\\\\c\\n\\t\\r\"");
  CHECK(json_string(std::string_view("\0\x7f", 2)) == "\"\\u0000\\u007f\"");
  CHECK(json_string("\xff\xc3\xa9") == "\"\xef\xbf\xbd\xc3\xa9\"");
}

TEST_CASE("a field that only claims to be a number is a string", "[logger]") {
  otp::LogRecord record = example();
  record.fields = {{"a", "1e5", true},  {"b", "0x1", true}, {"c", "01", true},
                   {"d", "-0.5", true}, {"e", "nan", true}, {"a", "2", true}};
  const std::string json = json_of(record);
  CHECK_THAT(json,
             Catch::Contains("\"fields\":{\"b\":\"0x1\",\"c\":\"01\",\"d\":-0.5,\"e\":\"nan\","
                             "\"a\":2}"));
}

TEST_CASE("R-039 the global locale changes no byte of a log line", "[logger]") {
  const std::string text = text_of(example());
  const std::string json = json_of(example());
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string text_then = text_of(example());
  const std::string json_then = json_of(example());
  std::locale::global(before);
  CHECK(text_then == text);
  CHECK(json_then == json);
}

TEST_CASE("times before 1970 and leap days are right", "[logger]") {
  const auto time_text = [](std::chrono::system_clock::time_point time) {
    std::string out;
    append_time(&out, time);
    return out;
  };
  CHECK(time_text({}) == "1970-01-01T00:00:00.000000Z");
  CHECK(time_text(std::chrono::system_clock::time_point(std::chrono::microseconds(-1))) ==
        "1969-12-31T23:59:59.999999Z");
  CHECK(time_text(std::chrono::sys_days(std::chrono::year(2024) / 2 / 29)) ==
        "2024-02-29T00:00:00.000000Z");
}
