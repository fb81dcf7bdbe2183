#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/bytes.h"

namespace jobs {

// The structs of config/jobs.yaml; its keys are these field names, the comments there say more.

/// How long a failed job waits for its next attempt: min, min * factor, min * factor^2, ... up to
/// max.
struct Backoff {
  std::chrono::milliseconds min{std::chrono::seconds(1)};
  std::chrono::milliseconds max{std::chrono::minutes(1)};
  double factor = 2;
};

/// What becomes of a job whose command was running when the service itself was killed.
enum class OnInterrupt {
  requeue,  ///< runs again, at most three interruptions: the command must bear being run twice
  fail,     ///< ends as failed
};

/// One kind of job.
struct KindSettings {
  /// The program and its fixed arguments; no shell. A name without a slash is looked up in PATH.
  std::vector<std::string> command = {};
  /// Added to PATH, HOME, LANG, LC_ALL, TZ and TMPDIR, the only variables a command inherits.
  std::map<std::string, std::string> environment = {};
  std::string directory = "/";

  uint32_t max_concurrency = 1;     ///< commands that run at the same time
  std::optional<double> rate = {};  ///< starts per second: a whole number, or less than 1
  uint32_t max_queued = 1000;       ///< jobs that wait; more are refused with 429
  std::chrono::milliseconds timeout{std::chrono::minutes(1)};     ///< of one attempt
  std::chrono::milliseconds kill_after{std::chrono::seconds(2)};  ///< from SIGTERM to SIGKILL
  uint32_t retries = 0;  ///< further attempts after one that failed or timed out
  Backoff backoff = {};
  OnInterrupt on_interrupt = OnInterrupt::requeue;
  otp::Bytes max_input = otp::mebibytes(1);
  otp::Bytes max_output = otp::kibibytes(64);  ///< kept; the rest is read and thrown away
  otp::Bytes max_error = otp::kibibytes(16);
};

using Kinds = std::map<std::string, KindSettings>;

/// A setting that makes no sense beyond its type.
struct SettingsProblem {
  std::string_view field;
  std::string expected;
};

/// The first problem of these settings.
std::optional<SettingsProblem> problem_of(const KindSettings& settings);

/// The environment for a kind's commands: "NAME=value" each.
/// Takes: inherited: the value of a variable of the service, or null (std::getenv).
std::vector<std::string> command_environment(
    const KindSettings& settings, const std::function<const char*(const char*)>& inherited);

/// A job that has been interrupted this often is not run again.
inline constexpr int kInterruptionsMax = 3;

/// Whether a job that was running when the service was killed runs again.
bool runs_again(const KindSettings& settings, int interruptions);

}  // namespace jobs
