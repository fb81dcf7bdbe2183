#pragma once

#include <string>

#include "apps/jobs/metrics.h"

namespace jobs {

/// The series of this service, one set for the whole program.
///
/// Threads: inside a process; the first call needs the settings.
JobMetrics& service_metrics();

/// All of them in the text format of Prometheus.
std::string service_metrics_text();

}  // namespace jobs
