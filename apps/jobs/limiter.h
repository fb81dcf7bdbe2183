#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/clock.h"
#include "apps/jobs/job.h"
#include "apps/jobs/settings.h"

namespace jobs {

/// At most so many starts in any window of this length.
///
/// A rate of 5 is five starts in *any* second, [t, t + 1 s) for every t, measured at the recorded
/// start times: a sliding window. (A token bucket would let ten through within one second after a
/// pause.) A rate below 1 is one start in 1/rate seconds.
struct StartWindow {
  size_t starts = 0;  ///< 0: no limit
  std::chrono::milliseconds length{};

  static StartWindow of(std::optional<double> rate);
};

/// Decides which job may start when: concurrency, rate and queue length of each kind. Plain logic
/// on numbers: it knows no clock (Moments are handed in) and does nothing itself.
///
/// Life of a job here: admit() takes a place in the queue; then enqueue() when it is stored, or
/// withdraw(); take_ready() hands it out and counts it as running; ended() gives its place back;
/// enqueue() again for a retry. Jobs of a kind start in the order of their ids as far as they are
/// due.
///
/// Rebuilt after a restart with restore_start() from the stored start times and enqueue() of the
/// stored jobs: a restart never allows a start more than the rate does.
class Limiter {
 public:
  explicit Limiter(const Kinds& kinds);

  enum class Refusal { unknown_kind, queue_full };
  struct Refused {
    Refusal why = Refusal::unknown_kind;
    std::chrono::seconds retry_after{1};  ///< queue_full: when a place may be free
  };
  /// Takes a place in the kind's queue. The place is kept until enqueue() or withdraw().
  std::optional<Refused> admit(const std::string& kind, Moment now);
  void withdraw(const std::string& kind);

  /// Puts an admitted job into the queue. Unknown kinds are ignored: they were failed at the start.
  void enqueue(const std::string& kind, JobId id, Moment due);
  /// Puts back a job that was accepted earlier: a retry, or after a restart. Never refused.
  void put_back(const std::string& kind, JobId id, Moment due);
  /// Takes a job out of the queue (cancelled). False: it was not waiting.
  bool remove(const std::string& kind, JobId id);

  struct Start {
    std::string kind;
    JobId id = 0;
  };
  /// The jobs that may start now; from here on they count as running and their start as made at
  /// `now`.
  std::vector<Start> take_ready(Moment now);
  /// When take_ready() may have something next, if nothing else happens; nothing: not by time
  /// alone.
  std::optional<Moment> next_ready(Moment now) const;

  /// The job runs no longer, or was not started after all.
  void ended(const std::string& kind);

  void restore_start(const std::string& kind, Moment at);

  size_t waiting(const std::string& kind) const;
  size_t running(const std::string& kind) const;

 private:
  struct Kind {
    size_t concurrency_max = 1;
    size_t queued_max = 1;
    StartWindow window;
    std::deque<Moment> starts;  // the last window.starts, oldest first
    size_t admitted = 0;
    size_t running = 0;
    std::set<JobId> ready;
    std::set<std::pair<Moment, JobId>> delayed;

    size_t waiting() const { return admitted + ready.size() + delayed.size(); }
    std::optional<Moment> rate_allows_at() const;
    void record_start(Moment at);
  };
  Kind* find(const std::string& kind);
  const Kind* find(const std::string& kind) const;

  std::map<std::string, Kind> kinds_;
  std::string last_served_;  // the next round begins behind it, so that no kind is always first
};

/// When a job that failed `failures` times (at least 1) starts again; nothing: not at all.
std::optional<Moment> retry_at(const KindSettings& settings, int failures, Moment now);

}  // namespace jobs
