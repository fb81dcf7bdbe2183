#include "apps/jobs/metrics.h"

#include "otp/base/enum_names.h"

namespace jobs {
namespace {

using otp::observe::MetricLabels;
using otp::observe::Metrics;

}  // namespace

JobMetrics::Kind::Kind(Metrics& metrics, const std::string& name)
    : submitted(metrics.counter("jobs_submitted_total", "Jobs accepted.", {{"kind", name}})),
      rejected(metrics.counter("jobs_rejected_total", "Jobs refused because the queue was full.",
                               {{"kind", name}})),
      retried(metrics.counter("jobs_retried_total", "Attempts that failed and will be repeated.",
                              {{"kind", name}})),
      ended{},
      wait(metrics.histogram("jobs_wait_seconds", "Time from when a job was due to its start.",
                             {{"kind", name}})),
      attempt(metrics.histogram("jobs_attempt_seconds", "Run time of commands.", {{"kind", name}})),
      waiting(metrics.gauge("jobs_waiting", "Jobs in the queue.", {{"kind", name}})),
      running(metrics.gauge("jobs_running", "Commands that run.", {{"kind", name}})),
      stored{} {
  for (const auto& state : otp::enum_names<State>) {
    const auto at = static_cast<size_t>(state.value);
    const MetricLabels labels = {{"kind", name}, {"state", std::string(state.name)}};
    stored[at] = &metrics.gauge("jobs_stored", "Jobs in the database.", labels);
    if (!is_final(state.value)) continue;
    ended[at] = &metrics.counter("jobs_ended_total", "Jobs that reached a final state.", labels);
  }
}

JobMetrics::JobMetrics(Metrics& metrics, const Kinds& kinds)
    : connections(metrics.gauge("jobs_http_connections", "Open client connections.")),
      connections_refused(
          metrics.counter("jobs_http_connections_refused_total", "Connections beyond the limit.")),
      batches(metrics.counter("jobs_store_batches_total", "Transactions written.")),
      operations(metrics.counter("jobs_store_operations_total", "Operations in transactions.")),
      store_errors(metrics.counter("jobs_store_errors_total", "Transactions that failed.")),
      metrics_(metrics) {
  for (const auto& [name, settings] : kinds) kinds_.try_emplace(name, metrics, name);
}

void JobMetrics::show_stored(const Counts& counts) {
  for (auto& [name, kind] : kinds_) {
    const auto found = counts.find(name);
    for (size_t state = 0; state < kind.stored.size(); ++state) {
      kind.stored[state]->set(found == counts.end() ? 0 : found->second[state]);
    }
  }
}

otp::observe::Counter& JobMetrics::http_response(int status) {
  return metrics_.counter("jobs_http_responses_total", "HTTP responses by status.",
                          {{"status", std::to_string(status)}});
}

}  // namespace jobs
