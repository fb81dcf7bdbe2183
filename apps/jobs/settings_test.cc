#include "apps/jobs/settings.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "apps/jobs/testing/configuration.h"

namespace jobs {
namespace {

std::string shipped_text() {
  std::ifstream file("config/jobs.yaml");
  REQUIRE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("the shipped configuration is right and says what its comments say", "[jobs][settings]") {
  const auto result = testing::check(shipped_text());
  INFO(result.text());
  REQUIRE(result.ok());
  const auto& settings = result.configuration->settings_as<Settings>();
  CHECK(settings.listen.to_string() == "127.0.0.1:8080");
  CHECK(settings.token.empty());
  CHECK(settings.keep.age == std::chrono::hours(24 * 7));
  REQUIRE(settings.kinds->size() == 3);
  const KindSettings& sha256 = settings.kinds->at("sha256");
  CHECK(sha256.command->back() == "s=$(sha256sum) && printf %s \"${s%% *}\"");
  CHECK(!sha256.rate);
  CHECK(settings.kinds->at("fail").rate == 20);
  // The values shown for sha256 are the defaults, but for those that say so.
  const KindSettings defaults;
  CHECK(sha256.directory == defaults.directory);
  CHECK(sha256.kill_after == defaults.kill_after);
  CHECK(sha256.retries == defaults.retries);
  CHECK(sha256.backoff.max == defaults.backoff.max);
  CHECK(sha256.on_interrupt == defaults.on_interrupt);
  CHECK(sha256.max_input == defaults.max_input);
  CHECK(sha256.max_output == defaults.max_output);
  CHECK(sha256.max_error == defaults.max_error);
  const HttpLimits http;
  CHECK(settings.http.max_connections == http.max_connections);
  CHECK(settings.http.max_header == http.max_header);
  CHECK(settings.http.idle_timeout == http.idle_timeout);
}

TEST_CASE("the environment picks the port and brings the token", "[jobs][settings]") {
  const auto free_port = testing::check(shipped_text(), {{"JOBS__LISTEN", "127.0.0.1:0"}});
  INFO(free_port.text());
  REQUIRE(free_port.ok());
  CHECK(free_port.configuration->settings_as<Settings>().listen.port == 0);

  const auto open = testing::check(shipped_text(), {{"JOBS__LISTEN", "0.0.0.0:80"}});
  CHECK(!open.ok());
  CHECK(open.text().find("expected a loopback address") != std::string::npos);

  const auto guarded =
      testing::check(shipped_text(), {{"JOBS__LISTEN", "0.0.0.0:80"}, {"JOBS_TOKEN", "s3cret"}});
  INFO(guarded.text());
  REQUIRE(guarded.ok());
  CHECK(guarded.configuration->settings_as<Settings>().token.matches("s3cret"));
}

TEST_CASE("settings that make no sense are refused where they stand", "[jobs][settings]") {
  const auto says = [](const std::string& from, const std::string& to, const std::string& part) {
    const auto result = testing::check(replaced(shipped_text(), from, to));
    INFO(result.text());
    CHECK(!result.ok());
    CHECK(result.text().find(part) != std::string::npos);
  };
  says("rate: 20", "rate: 2.5", "expected starts per second");
  says("max_queued: 10000", "max_queued: 0", "expected a number from 1");
  says("listen: 127.0.0.1:8080", "listen: somewhere", "expected an address such as");
  says("on_interrupt: requeue", "on_interrupt: retry", "requeue");
  says("max_concurrency: 32", "max_concurency: 32", "max_concurency");
  says("max_header: 16KiB", "max_header: 1B", "max_header from 1KiB");
  says("directory: /", "directory: here", "expected an absolute path");
}

}  // namespace jobs
