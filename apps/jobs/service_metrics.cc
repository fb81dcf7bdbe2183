#include "apps/jobs/service_metrics.h"

#include "apps/jobs/settings.h"
#include "otp/application/application.h"

namespace jobs {
namespace {

otp::observe::Metrics& registry() {
  static otp::observe::Metrics metrics;
  return metrics;
}

}  // namespace

JobMetrics& service_metrics() {
  static JobMetrics metrics(registry(), *otp::settings<Settings>().kinds);
  return metrics;
}

std::string service_metrics_text() { return registry().prometheus_text(); }

}  // namespace jobs
