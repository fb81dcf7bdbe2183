#include "apps/jobs/limiter.h"

#include <algorithm>
#include <cmath>

namespace jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kRetryAfterMin{1};
constexpr seconds kRetryAfterMax{3600};

}  // namespace

StartWindow StartWindow::of(std::optional<double> rate) {
  if (!rate) return {};
  if (*rate >= 1) return {.starts = static_cast<size_t>(*rate), .length = milliseconds(1000)};
  return {.starts = 1, .length = milliseconds(static_cast<int64_t>(std::ceil(1000 / *rate)))};
}

std::optional<Moment> Limiter::Kind::rate_allows_at() const {
  if (window.starts == 0 || starts.size() < window.starts) return std::nullopt;
  return starts.front() + window.length;
}

void Limiter::Kind::record_start(Moment at) {
  if (window.starts == 0) return;
  starts.push_back(at);
  if (starts.size() > window.starts) starts.pop_front();
}

Limiter::Limiter(const Kinds& kinds) {
  for (const auto& [name, settings] : kinds) {
    Kind& kind = kinds_[name];
    kind.concurrency_max = settings.max_concurrency;
    kind.queued_max = settings.max_queued;
    kind.window = StartWindow::of(settings.rate);
  }
}

Limiter::Kind* Limiter::find(const std::string& kind) {
  const auto found = kinds_.find(kind);
  return found == kinds_.end() ? nullptr : &found->second;
}

const Limiter::Kind* Limiter::find(const std::string& kind) const {
  const auto found = kinds_.find(kind);
  return found == kinds_.end() ? nullptr : &found->second;
}

std::optional<Limiter::Refused> Limiter::admit(const std::string& name, Moment now) {
  Kind* kind = find(name);
  if (kind == nullptr) return Refused{.why = Refusal::unknown_kind};
  if (kind->waiting() < kind->queued_max) {
    ++kind->admitted;
    return std::nullopt;
  }
  const milliseconds wait = kind->rate_allows_at().value_or(now) - now;
  const seconds rounded = std::chrono::ceil<seconds>(wait);
  return Refused{.why = Refusal::queue_full,
                 .retry_after = std::clamp(rounded, kRetryAfterMin, kRetryAfterMax)};
}

void Limiter::withdraw(const std::string& name) {
  Kind* kind = find(name);
  if (kind != nullptr && kind->admitted > 0) --kind->admitted;
}

void Limiter::enqueue(const std::string& name, JobId id, Moment due) {
  withdraw(name);
  put_back(name, id, due);
}

void Limiter::put_back(const std::string& name, JobId id, Moment due) {
  // All go through `delayed`; take_ready() moves those that are due.
  if (Kind* kind = find(name)) kind->delayed.emplace(due, id);
}

bool Limiter::remove(const std::string& name, JobId id) {
  Kind* kind = find(name);
  if (kind == nullptr) return false;
  if (kind->ready.erase(id) > 0) return true;
  const auto found = std::ranges::find(kind->delayed, id, &std::pair<Moment, JobId>::second);
  if (found == kind->delayed.end()) return false;
  kind->delayed.erase(found);
  return true;
}

std::vector<Limiter::Start> Limiter::take_ready(Moment now) {
  std::vector<Start> starts;
  // One job of each kind in turn, beginning behind the kind that was served last.
  std::vector<std::pair<const std::string*, Kind*>> turn;
  for (auto at = kinds_.upper_bound(last_served_); at != kinds_.end(); ++at) {
    turn.emplace_back(&at->first, &at->second);
  }
  for (auto at = kinds_.begin(); at != kinds_.upper_bound(last_served_); ++at) {
    turn.emplace_back(&at->first, &at->second);
  }
  for (auto& [name, kind] : turn) {
    while (!kind->delayed.empty() && kind->delayed.begin()->first <= now) {
      kind->ready.insert(kind->delayed.begin()->second);
      kind->delayed.erase(kind->delayed.begin());
    }
  }
  for (bool any = true; any;) {
    any = false;
    for (auto& [name, kind] : turn) {
      if (kind->ready.empty() || kind->running >= kind->concurrency_max) continue;
      if (kind->rate_allows_at().value_or(now) > now) continue;
      starts.push_back({.kind = *name, .id = *kind->ready.begin()});
      kind->ready.erase(kind->ready.begin());
      ++kind->running;
      kind->record_start(now);
      last_served_ = *name;
      any = true;
    }
  }
  return starts;
}

std::optional<Moment> Limiter::next_ready(Moment now) const {
  std::optional<Moment> next;
  for (const auto& [name, kind] : kinds_) {
    if (kind.running >= kind.concurrency_max) continue;
    if (kind.ready.empty() && kind.delayed.empty()) continue;
    const Moment due = kind.ready.empty() ? kind.delayed.begin()->first : now;
    const Moment at = std::max({now, due, kind.rate_allows_at().value_or(now)});
    if (!next || at < *next) next = at;
  }
  return next;
}

void Limiter::ended(const std::string& name) {
  Kind* kind = find(name);
  if (kind != nullptr && kind->running > 0) --kind->running;
}

void Limiter::restore_start(const std::string& name, Moment at) {
  if (Kind* kind = find(name)) kind->record_start(at);
}

size_t Limiter::waiting(const std::string& name) const {
  const Kind* kind = find(name);
  return kind == nullptr ? 0 : kind->waiting();
}

size_t Limiter::running(const std::string& name) const {
  const Kind* kind = find(name);
  return kind == nullptr ? 0 : kind->running;
}

std::optional<Moment> retry_at(const KindSettings& settings, int failures, Moment now) {
  if (failures > static_cast<int>(settings.retries)) return std::nullopt;
  const Backoff& backoff = settings.backoff;
  const double wait = static_cast<double>(backoff.min.count()) *
                      std::pow(backoff.factor, std::max(failures - 1, 0));
  const double most = static_cast<double>(backoff.max.count());
  return now + milliseconds(static_cast<int64_t>(std::min(wait, most)));
}

}  // namespace jobs
