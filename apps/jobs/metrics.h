#pragma once

#include <array>
#include <map>
#include <string>

#include "apps/jobs/database.h"
#include "apps/jobs/settings.h"
#include "otp/observe/metrics.h"

namespace jobs {

/// What GET /metrics shows, as series that are looked up once. Threads: any.
class JobMetrics {
 public:
  /// Of one kind, since the service started.
  struct Kind {
    Kind(otp::observe::Metrics& metrics, const std::string& name);

    otp::observe::Counter& submitted;
    otp::observe::Counter& rejected;              ///< the queue was full
    otp::observe::Counter& retried;               ///< attempts that failed and will be repeated
    std::array<otp::observe::Counter*, 6> ended;  ///< by State; null for those that are not final
    otp::observe::Histogram& wait;                ///< from when a job was due to its start
    otp::observe::Histogram& attempt;             ///< run time of commands
    otp::observe::Gauge& waiting;
    otp::observe::Gauge& running;
    std::array<otp::observe::Gauge*, 6> stored;  ///< in the database, by State
  };

  JobMetrics(otp::observe::Metrics& metrics, const Kinds& kinds);

  /// REQUIRES: a configured kind.
  Kind& kind(const std::string& name) { return kinds_.at(name); }
  /// Shows what is in the database; jobs of kinds that are no longer configured are left out.
  void show_stored(const Counts& counts);
  otp::observe::Counter& http_response(int status);

  otp::observe::Gauge& connections;
  otp::observe::Counter& connections_refused;
  otp::observe::Counter& batches;     ///< transactions written
  otp::observe::Counter& operations;  ///< in these transactions
  otp::observe::Counter& store_errors;

 private:
  otp::observe::Metrics& metrics_;
  std::map<std::string, Kind> kinds_;
};

}  // namespace jobs
