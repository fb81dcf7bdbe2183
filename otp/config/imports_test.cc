#include "otp/config/imports.h"

#include <catch2/catch.hpp>
#include <string>

#include "otp/config/testing/bank_files.h"

using namespace otp::config;

TEST_CASE("the environment is read at each check", "[config][imports]") {
  const bank::Files files{{"etc/bank.yaml", bank::kImportingFile},
                          {"etc/dev.yaml", "settings: {listen: dev}\n"},
                          {"etc/prod.yaml", "settings: {listen: prod}\n"},
                          {"/run/bank.yaml", "{}\n"}};
  CHECK(bank::check_files(files).configuration->settings_as<bank::Settings>().listen == "dev");
  CHECK(bank::check_files(files, {{"BANK_ENV", "prod"}})
            .configuration->settings_as<bank::Settings>()
            .listen == "prod");
  CHECK(bank::check_files(files, {{"BANK__LISTEN", "override"}})
            .configuration->settings_as<bank::Settings>()
            .listen == "override");
}

TEST_CASE("mistakes in imported files have their own positions", "[config][imports]") {
  const std::string bank =
      "application: bank\nimports: [x.yaml, y.yaml]\n"
      "supervisor: {children: [{id: a, start: Clock}]}\n";
  CHECK(bank::check_files({{"etc/bank.yaml", bank},
                           {"etc/x.yaml", "settings:\n  listn: x\n"},
                           {"etc/y.yaml", "supervisor: {children: [{id: a, significant: 3}]}\n"}})
            .text() ==
        "etc/x.yaml:2:3: expected a setting of bank (listen, limits, token or hosts), got listn; "
        "did you mean listen?\n"
        "etc/y.yaml:1:46: expected true or false, got 3\n");
}

TEST_CASE("files import each other to a limited depth", "[config][imports]") {
  bank::Files files{
      {"etc/bank.yaml", "application: bank\nimports: [0.yaml]\nsupervisor: {children: []}\n"}};
  for (int i = 0; i < 40; ++i) {
    files["etc/" + std::to_string(i) + ".yaml"] = "imports: [" + std::to_string(i + 1) + ".yaml]\n";
  }
  CHECK(bank::check_files(files).text() ==
        "etc/14.yaml:1:11: expected at most 16 files in each other, got another\n");
}

TEST_CASE("files are read from the file system unless a test says otherwise", "[config][imports]") {
  std::string error;
  CHECK(read_file("tests/data/unknown_key.yaml", error).has_value());
  CHECK_FALSE(read_file("tests/data/none.yaml", error).has_value());
  CHECK(error == "No such file or directory");
  CHECK_FALSE(read_file("tests", error).has_value());
  CHECK(error == "Is a directory");
}

TEST_CASE("a file without an end is read no further than a configuration may be long",
          "[config][imports]") {
  std::string error;
  CHECK_FALSE(read_file("/dev/zero", error).has_value());
  CHECK(error == "more than 16MiB");
  const auto result = check("application: bank\nimports: [/dev/zero]\n", "bank.yaml", {}, {});
  CHECK(result.text() ==
        "bank.yaml:2:11: expected a file that can be read, got /dev/zero (more than 16MiB)\n");
}
