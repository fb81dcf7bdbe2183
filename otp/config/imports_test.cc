#include "otp/config/imports.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "otp/config/testing/bank.h"

using namespace otp::config;

namespace {

using Files = std::map<std::string, std::string>;

CheckResult check_files(const Files& files, const Environment& environment = {}) {
  CheckOptions options;
  options.read = [&](const std::string& path, std::string& error) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found != files.end()) return found->second;
    error = "no such file";
    return std::nullopt;
  };
  return check(files.at("etc/bank.yaml"), "etc/bank.yaml", {bank::application()}, environment,
               options);
}

const std::string kBase =
    "application: bank\n"
    "imports: [\"${BANK_ENV:dev}.yaml\", /run/bank.yaml]\n"
    "settings: {listen: base, limits: {daily: 1, factor: 1}, hosts: [a, b]}\n"
    "supervisor:\n  intensity: 3\n  children:\n"
    "    - {id: ledger, start: Ledger, args: {currency: EUR, tellers: 1}}\n"
    "    - {id: clock, start: Clock}\n";

}  // namespace

TEST_CASE("APP-016 imported files win over the file, the last of them over all",
          "[config][imports]") {
  const auto result = check_files({{"etc/bank.yaml", kBase},
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

TEST_CASE("APP-017 the environment is read at each check", "[config][imports]") {
  const Files files{{"etc/bank.yaml", kBase},
                    {"etc/dev.yaml", "settings: {listen: dev}\n"},
                    {"etc/prod.yaml", "settings: {listen: prod}\n"},
                    {"/run/bank.yaml", "{}\n"}};
  CHECK(check_files(files).configuration->settings_as<bank::Settings>().listen == "dev");
  CHECK(check_files(files, {{"BANK_ENV", "prod"}})
            .configuration->settings_as<bank::Settings>()
            .listen == "prod");
  CHECK(check_files(files, {{"BANK__LISTEN", "override"}})
            .configuration->settings_as<bank::Settings>()
            .listen == "override");
}

TEST_CASE("APP-019 imports that are missing, wrong or circular are errors at the import",
          "[config][imports]") {
  CHECK(check_files({{"etc/bank.yaml",
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
  CHECK(check_files(
            {{"etc/bank.yaml", "application: bank\nimports: x\nsupervisor: {children: []}\n"}})
            .text() == "etc/bank.yaml:2:10: expected a list of files, got x\n");
}

TEST_CASE("mistakes in imported files have their own positions", "[config][imports]") {
  const std::string bank =
      "application: bank\nimports: [x.yaml, y.yaml]\n"
      "supervisor: {children: [{id: a, start: Clock}]}\n";
  CHECK(check_files({{"etc/bank.yaml", bank},
                     {"etc/x.yaml", "settings:\n  listn: x\n"},
                     {"etc/y.yaml", "supervisor: {children: [{id: a, significant: 3}]}\n"}})
            .text() ==
        "etc/x.yaml:2:3: expected a setting of bank (listen, limits, token or hosts), got listn; "
        "did you mean listen?\n"
        "etc/y.yaml:1:46: expected true or false, got 3\n");
}

TEST_CASE("APP-019 nothing is checked when an import cannot be parsed", "[config][imports]") {
  CHECK(check_files({{"etc/bank.yaml", "application: bank\nimports: [y.yaml]\n"},
                     {"etc/y.yaml", "settings: {limits: {daily: ${NONE}\n"}})
            .text() ==
        "etc/y.yaml:1:29: expected a comma or } after this value, got {NONE; inside { } and [ ] a "
        "placeholder needs quotes\n");
}

TEST_CASE("files import each other to a limited depth", "[config][imports]") {
  Files files{
      {"etc/bank.yaml", "application: bank\nimports: [0.yaml]\nsupervisor: {children: []}\n"}};
  for (int i = 0; i < 40; ++i) {
    files["etc/" + std::to_string(i) + ".yaml"] = "imports: [" + std::to_string(i + 1) + ".yaml]\n";
  }
  CHECK(check_files(files).text() ==
        "etc/14.yaml:1:11: expected at most 16 files in each other, got another\n");
}

TEST_CASE("files are read from the file system unless a test says otherwise", "[config][imports]") {
  std::string error;
  CHECK(read_file("tests/data/unknown_key.yaml", error).has_value());
  CHECK_FALSE(read_file("tests/data/none.yaml", error).has_value());
  CHECK(error == "No such file or directory");
  CHECK_FALSE(read_file("tests", error).has_value());
}
