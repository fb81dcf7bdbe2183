#include "otp/config/imports.h"

#include <catch2/catch.hpp>
#include <string>

#include "otp/config/testing/bank_files.h"

using namespace otp::config;

TEST_CASE("APP-016 imported files win over the file, the last of them over all", "[app][config]") {
  const auto result =
      bank::check_files({{"etc/bank.yaml", bank::kImportingFile},
                         {"etc/prod.yaml",
                          "settings: {listen: prod, limits: {daily: 2}, hosts: [c]}\n"
                          "supervisor: {intensity: 5, children: [{id: ledger, args: "
                          "{tellers: 2}, restart: transient}, "
                          "{id: audit, start: Audit}]}\n"},
                         {"/run/bank.yaml", "settings: {listen: runtime}\n"}},
                        {{"BANK_ENV", "prod"}});
  INFO(result.text());
  REQUIRE(result.ok());
  const auto& settings = result.configuration->settings_as<bank::Settings>();
  CHECK(settings.listen == "runtime");
  CHECK(settings.limits.daily == 2);
  CHECK(settings.limits.factor == 1.0);
  CHECK(settings.hosts == std::vector<std::string>{"c"});
  const SupervisorDecl& top = result.configuration->supervisor;
  CHECK(top.intensity == 5);
  REQUIRE(top.children.size() == 3);
  CHECK(top.children[0].id == "ledger");
  CHECK(top.children[0].args_of<bank::Ledger>().currency.get() == "EUR");
  CHECK(top.children[0].args_of<bank::Ledger>().tellers == 2);
  CHECK(top.children[0].restart == otp::Restart::transient);
  CHECK(top.children[1].id == "clock");
  CHECK(top.children[2].id == "audit");
}

TEST_CASE("APP-018 providers run in order, each on what the one before gave", "[app][config]") {
  using otp::ExitReason;
  using otp::Result;
  std::string seen;
  CheckOptions options;
  options.providers = {[&](std::string yaml) -> Result<std::string> {
                         seen += "1";
                         yaml.replace(yaml.find("first"), 5, "second");
                         return yaml;
                       },
                       [&](std::string yaml) -> Result<std::string> {
                         seen += yaml.find("second") == std::string::npos ? "?" : "2";
                         return yaml + "settings: {listen: provided}\n";
                       }};
  const std::string bank = "application: bank  # first\nsupervisor: {children: []}\n";
  auto boot = [&] { return check(bank, "bank.yaml", {bank::application()}, {}, options); };
  CheckResult result = boot();
  INFO(result.text());
  REQUIRE(result.ok());
  CHECK(seen == "12");
  CHECK(result.configuration->settings_as<bank::Settings>().listen == "provided");

  options.providers.insert(options.providers.begin() + 1, [](std::string) -> Result<std::string> {
    return ExitReason::tagged("no_vault", otp::Term("10.0.0.1"));
  });
  result = boot();
  CHECK_FALSE(result.ok());
  CHECK(result.text() ==
        "bank.yaml:1:1: expected a configuration from provider 2, got {no_vault,\"10.0.0.1\"}\n");
  CHECK(seen == "121");  // the third did not run
}

TEST_CASE("APP-019 imports that are missing, wrong or circular are errors at the import",
          "[app][config]") {
  CHECK(bank::check_files(
            {{"etc/bank.yaml",
              "application: bank\nimports: [none.yaml, bank.yaml, list.yaml, a.yaml, [x]]\n"
              "supervisor: {children: []}\n"},
             {"etc/list.yaml", "- a\n"},
             {"etc/a.yaml", "imports: [b.yaml]\n"},
             {"etc/b.yaml", "imports:\n  - a.yaml\n"}})
            .text() ==
        "etc/bank.yaml:2:11: expected a file that can be read, got none.yaml (no such file)\n"
        "etc/bank.yaml:2:22: expected a file that does not import itself, got bank.yaml\n"
        "etc/bank.yaml:2:33: expected a file that is a mapping, got list.yaml, which is not\n"
        "etc/bank.yaml:2:52: expected the name of a file, got a list\n"
        "etc/b.yaml:2:5: expected a file that does not import itself, got a.yaml\n");
  CHECK(bank::check_files(
            {{"etc/bank.yaml", "application: bank\nimports: x\nsupervisor: {children: []}\n"}})
            .text() == "etc/bank.yaml:2:10: expected a list of files, got x\n");
}

TEST_CASE("APP-019 nothing is checked when an import cannot be parsed", "[app][config]") {
  CHECK(bank::check_files({{"etc/bank.yaml", "application: bank\nimports: [y.yaml]\n"},
                           {"etc/y.yaml", "settings: {limits: {daily: ${NONE}\n"}})
            .text() ==
        "etc/y.yaml:1:29: expected a comma or } after this value, got {NONE; inside { } and [ ] a "
        "placeholder needs quotes\n");
}
