#include "apps/jobs/settings.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace jobs {
namespace {

using otp::config::Problem;
using std::chrono::milliseconds;

constexpr double kRateMin = 1.0 / 3600;  // start times are kept for an hour
constexpr double kRateMax = 10'000;
constexpr uint32_t kConcurrencyMax = 1000;  // each running command needs three descriptors
constexpr uint32_t kQueuedMax = 1'000'000;
constexpr uint32_t kRetriesMax = 1000;
constexpr size_t kNameBytesMax = 64;
constexpr milliseconds kLongest = std::chrono::hours(24 * 365);
constexpr otp::Bytes kBytesMax = otp::mebibytes(64);

bool good_rate(double rate) {
  if (!(rate >= kRateMin && rate <= kRateMax)) return false;
  return rate < 1 || rate == std::floor(rate);
}

bool good_variable(const std::string& name) {
  return !name.empty() && name.find('=') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

bool within(milliseconds value, milliseconds least) { return value >= least && value <= kLongest; }

}  // namespace

std::optional<Problem> KindSettings::problem() const {
  const auto holds_nul = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  const auto problem = [](std::string_view field, std::string expected) {
    return Problem{.field = field, .expected = std::move(expected)};
  };
  if (command->empty() || command->front().empty() || std::ranges::any_of(*command, holds_nul)) {
    return problem("command", "a program and its arguments, such as [sha256sum]");
  }
  for (const auto& [name, value] : environment) {
    if (!good_variable(name) || holds_nul(value))
      return problem("environment", "names without `=`");
  }
  if (directory.empty() || directory[0] != '/' || holds_nul(directory)) {
    return problem("directory", "an absolute path");
  }
  if (max_concurrency < 1 || max_concurrency > kConcurrencyMax) {
    return problem("max_concurrency", "a number from 1 to 1000");
  }
  if (rate && !good_rate(*rate)) {
    return problem("rate",
                   "starts per second: a whole number up to 10000, or a fraction below 1 and "
                   "not under 0.0003 (0.2 is one start in 5 s)");
  }
  if (max_queued < 1 || max_queued > kQueuedMax) {
    return problem("max_queued", "a number from 1 to 1000000");
  }
  if (!within(timeout, milliseconds(1))) return problem("timeout", "from 1ms to 365d");
  if (!within(kill_after, milliseconds(0))) return problem("kill_after", "from 0s to 365d");
  if (retries > kRetriesMax) return problem("retries", "a number up to 1000");
  const bool good_backoff = within(backoff.min, milliseconds(0)) &&
                            within(backoff.max, backoff.min) && backoff.factor >= 1 &&
                            backoff.factor <= 100;
  if (!good_backoff) return problem("backoff", "min <= max <= 365d, and a factor from 1 to 100");
  if (max_input > kBytesMax) return problem("max_input", "at most 64MiB");
  if (max_output > kBytesMax) return problem("max_output", "at most 64MiB");
  if (max_error > kBytesMax) return problem("max_error", "at most 64MiB");
  return std::nullopt;
}

std::optional<Problem> Settings::problem() const {
  const auto problem = [](std::string_view field, std::string expected) {
    return Problem{.field = field, .expected = std::move(expected)};
  };
  if (!is_loopback(listen) && token.empty()) {
    return problem("listen", "a loopback address, as there is no token (JOBS_TOKEN)");
  }
  if (database.empty()) return problem("database", "a path");
  if (kinds->empty()) return problem("kinds", "at least one kind");
  for (const auto& [name, kind] : *kinds) {
    if (name.empty() || name.size() > kNameBytesMax)
      return problem("kinds", "names of 1 to 64 bytes");
  }
  const bool good_http =
      http.max_connections >= 1 && http.max_header >= otp::kibibytes(1) &&
      http.max_header <= otp::mebibytes(1) && within(http.header_timeout, milliseconds(1)) &&
      within(http.body_timeout, milliseconds(1)) && within(http.idle_timeout, milliseconds(1)) &&
      within(http.write_timeout, milliseconds(1));
  if (!good_http) {
    return problem(
        "http", "max_connections from 1, max_header from 1KiB to 1MiB, timeouts from 1ms to 365d");
  }
  if (!within(keep.age, milliseconds(0))) return problem("keep", "an age up to 365d");
  return std::nullopt;
}

std::vector<std::string> command_environment(
    const KindSettings& settings, const std::function<const char*(const char*)>& inherited) {
  constexpr std::array kInherited = {"HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"};
  std::map<std::string, std::string> variables;
  for (const char* name : kInherited) {
    const char* value = inherited(name);
    if (value != nullptr && *value != '\0') variables[name] = value;
  }
  if (!variables.contains("PATH")) variables["PATH"] = "/usr/local/bin:/usr/bin:/bin";
  for (const auto& [name, value] : settings.environment) variables[name] = value;
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

bool runs_again(const KindSettings& settings, int interruptions) {
  return settings.on_interrupt == OnInterrupt::requeue && interruptions < kInterruptionsMax;
}

}  // namespace jobs
