#include <catch2/catch.hpp>
#include <clocale>
#include <locale>
#include <string>

#include "otp/config/json_schema.h"
#include "otp/config/testing/bank.h"

namespace {

/// Groups digits by a mark and writes a comma as the decimal point, wherever a stream looks at it.
class Grouping : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

const std::string kYaml =
    "application: bank\nsettings: {limits: {daily: 1000000, factor: 1234.5}}\nsupervisor:\n"
    "  period: 1.5s\n  children:\n"
    "    - {id: audit, start: Audit, shutdown: infinity, args: {every: 2.5s, log_size: 64KiB}}\n"
    "    - {id: l, start: Ledger, args: {currency: I, rounding: half_even}}\n";

std::string wrong() {
  std::string yaml =
      "application: bank\nsupervisor:\n  intensity: 12345678901\n  period: INFINITY\n";
  for (int i = 0; i < 1100; ++i) yaml += "#\n";
  return yaml + "  children: [{id: a, start: AUDIT, shutdown: 1,5s}, \"\\ud800\"";
}

/// Everything that a locale could change, as one text.
std::string everything() {
  const auto good = bank::check(kYaml);
  REQUIRE(good.ok());
  const auto& bank = *good.configuration;
  CHECK(bank.supervisor.period == std::chrono::milliseconds(1500));
  CHECK(bank.settings_as<bank::Settings>().limits.factor == 1234.5);
  CHECK(bank.supervisor.children.at(0).shutdown.is_infinity());
  const auto& audit = bank.supervisor.children.at(0).args_of<bank::Audit>();
  CHECK(audit.every == std::chrono::milliseconds(2500));
  CHECK(audit.log_size == otp::kibibytes(64));
  return bank::check(wrong()).text() + bank::check(wrong() + "]\n").text() +
         bank::check("application: BANK\nsupervisor: {children: [], PERIOD: 1}\n").text() +
         otp::config::json_schema(bank::application());
}

}  // namespace

TEST_CASE("R-039 a check says the same in every locale", "[config][locale]") {
  const std::string expected = everything();
  CHECK(expected.find("did you mean bank?") != std::string::npos);
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouping));
  CHECK(everything() == expected);
  for (const char* name : {"de_DE.UTF-8", "en_US.UTF-8", "tr_TR.UTF-8", "xx_XX.UTF-8"}) {
    INFO(name);
    try {
      std::locale::global(std::locale(std::locale(name), new Grouping));
    } catch (const std::runtime_error&) {
      std::setlocale(LC_ALL, name);  // not installed: no reason to fail
    }
    CHECK(everything() == expected);
  }
  std::locale::global(before);
  std::setlocale(LC_ALL, c_before.c_str());
}
