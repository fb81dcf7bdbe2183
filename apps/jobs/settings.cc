#include "apps/jobs/settings.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace jobs {
namespace {

using std::chrono::milliseconds;

constexpr double kRateMin = 1.0 / 3600;  // start times are kept for an hour
constexpr double kRateMax = 10'000;
constexpr uint32_t kConcurrencyMax = 1000;  // each running command needs three descriptors
constexpr uint32_t kQueuedMax = 1'000'000;
constexpr uint32_t kRetriesMax = 1000;
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

std::optional<SettingsProblem> problem_of(const KindSettings& settings) {
  const auto holds_nul = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  const auto problem = [](std::string_view field, std::string expected) {
    return SettingsProblem{.field = field, .expected = std::move(expected)};
  };
  if (settings.command.empty() || settings.command[0].empty() ||
      std::ranges::any_of(settings.command, holds_nul)) {
    return problem("command", "a program and its arguments, such as [sha256sum]");
  }
  for (const auto& [name, value] : settings.environment) {
    if (!good_variable(name) || holds_nul(value))
      return problem("environment", "names without `=`");
  }
  if (settings.directory.empty() || settings.directory[0] != '/' || holds_nul(settings.directory)) {
    return problem("directory", "an absolute path");
  }
  if (settings.max_concurrency < 1 || settings.max_concurrency > kConcurrencyMax) {
    return problem("max_concurrency", "a number from 1 to 1000");
  }
  if (settings.rate && !good_rate(*settings.rate)) {
    return problem("rate",
                   "starts per second: a whole number up to 10000, or a fraction below 1 and "
                   "not under 0.0003 (0.2 is one start in 5 s)");
  }
  if (settings.max_queued < 1 || settings.max_queued > kQueuedMax) {
    return problem("max_queued", "a number from 1 to 1000000");
  }
  if (!within(settings.timeout, milliseconds(1))) return problem("timeout", "from 1ms to 365d");
  if (!within(settings.kill_after, milliseconds(0)))
    return problem("kill_after", "from 0s to 365d");
  if (settings.retries > kRetriesMax) return problem("retries", "a number up to 1000");
  const Backoff& backoff = settings.backoff;
  const bool good_backoff = within(backoff.min, milliseconds(0)) &&
                            within(backoff.max, backoff.min) && backoff.factor >= 1 &&
                            backoff.factor <= 100;
  if (!good_backoff) return problem("backoff", "min <= max <= 365d, and a factor from 1 to 100");
  if (settings.max_input > kBytesMax) return problem("max_input", "at most 64MiB");
  if (settings.max_output > kBytesMax) return problem("max_output", "at most 64MiB");
  if (settings.max_error > kBytesMax) return problem("max_error", "at most 64MiB");
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
