#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/jobs/listen_address.h"
#include "otp/base/bytes.h"
#include "otp/base/secret.h"
#include "otp/config/describe.h"
#include "otp/config/required.h"
#include "otp/config/type_description.h"

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
  otp::Required<std::vector<std::string>> command = {};
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

  std::optional<otp::config::Problem> problem() const;
};

using Kinds = std::map<std::string, KindSettings>;

/// Limits on clients. The deadlines are absolute: bytes that drip in extend none of them.
struct HttpLimits {
  uint32_t max_connections = 1000;  ///< more are closed at once, with 503 where possible
  otp::Bytes max_header = otp::kibibytes(16);
  std::chrono::milliseconds header_timeout{std::chrono::seconds(10)};  ///< first byte to last
  std::chrono::milliseconds body_timeout{std::chrono::seconds(30)};
  std::chrono::milliseconds idle_timeout{std::chrono::minutes(1)};    ///< between two requests
  std::chrono::milliseconds write_timeout{std::chrono::seconds(30)};  ///< of one response
};

/// How long ended jobs can be looked at.
struct Keep {
  uint64_t ended = 100'000;  ///< the oldest beyond this many are deleted
  std::chrono::milliseconds age{std::chrono::hours(24 * 7)};  ///< and those that are older
};

/// `settings:` of config/jobs.yaml.
struct Settings {
  otp::io::Address listen = {};
  otp::Secret token = {};            ///< empty: no token is asked for, and only loopback is allowed
  std::string database = "jobs.db";  ///< a relative path is below the run directory
  HttpLimits http = {};
  Keep keep = {};
  otp::Required<Kinds> kinds = {};

  std::optional<otp::config::Problem> problem() const;
};

/// The environment for a kind's commands: "NAME=value" each.
/// Takes: inherited: the value of a variable of the service, or null (std::getenv).
std::vector<std::string> command_environment(
    const KindSettings& settings, const std::function<const char*(const char*)>& inherited);

/// A job that has been interrupted this often is not run again.
inline constexpr int kInterruptionsMax = 3;

/// Whether a job that was running when the service was killed runs again.
bool runs_again(const KindSettings& settings, int interruptions);

}  // namespace jobs
