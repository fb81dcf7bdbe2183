// The keys of a configuration file as plain structs: the decoder fills them, the schema lists them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "otp/config/describe.h"
#include "otp/config/required.h"
#include "otp/supervision/child_spec_types.h"

namespace otp::config {

struct MailboxKeys {
  Required<uint64_t> max;
  OnFull on_full = OnFull::reject;

  std::optional<Problem> problem() const {
    if (max.get() == 0) return Problem{"max", "at least 1 message"};
    return std::nullopt;
  }
};

struct BackoffKeys {
  Required<Duration> min;
  Required<Duration> max;
  double factor = 2;

  std::optional<Problem> problem() const {
    if (max.get() < min.get()) return Problem{"max", "a duration not below min"};
    if (!(factor >= 1)) return Problem{"factor", "a factor of at least 1"};
    return std::nullopt;
  }
};

/// A child that runs a server; `start` and `args` are read apart.
struct WorkerKeys {
  Required<std::string> id;
  std::optional<std::string> name;
  Restart restart = Restart::permanent;
  Shutdown shutdown = kDefaultWorkerShutdown;
  bool significant = false;
  std::optional<MailboxKeys> mailbox;
  std::optional<BackoffKeys> backoff;
  bool drop_expired = false;
};

/// A child that is a supervisor; `supervisor` is read apart.
struct SubtreeKeys {
  Required<std::string> id;
  std::optional<std::string> name;
  Restart restart = Restart::permanent;
  Shutdown shutdown = infinity;
  bool significant = false;
  std::optional<BackoffKeys> backoff;
};

/// A supervisor; `children` is read apart.
struct SupervisorKeys {
  Strategy strategy = kDefaultStrategy;
  uint32_t intensity = kDefaultIntensity;
  Duration period = kDefaultPeriod;
  AutoShutdown auto_shutdown = AutoShutdown::never;

  std::optional<Problem> problem() const {
    if (period <= Duration(0)) return Problem{"period", "a duration above 0s"};
    return std::nullopt;
  }
};

}  // namespace otp::config
