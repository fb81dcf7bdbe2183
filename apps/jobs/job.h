#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/jobs/clock.h"

namespace jobs {

/// Given in the order of acceptance and never used twice, as long as the database lives.
///
/// Not a random word: an id is no secret (whoever may submit may also list), and a rising number is
/// the table's own key. It shows the order of jobs, pages a list without an index of its own, and
/// can be told over the telephone.
using JobId = int64_t;

/// Where a job is. The last four are final.
enum class State { queued, running, done, failed, timeout, cancelled };

constexpr bool is_final(State state) { return state >= State::done; }

/// A job as the database has it and the API shows it (job_json.h).
struct Job {
  JobId id = 0;
  std::string kind = {};
  State state = State::queued;
  int attempts = 0;       ///< how often its command was started, interrupted runs included
  int interruptions = 0;  ///< how many of them ended with the service instead of by themselves
  std::optional<int> exit_status = {};  ///< of the last attempt; nothing when a signal ended it
  std::string output = {};              ///< the first bytes of its standard output, as they were
  bool output_truncated = false;
  std::string error = {};  ///< its standard error, or why there is none
  bool error_truncated = false;
  Moment enqueued_at{};
  Moment due_at{};                         ///< queued: not to be started earlier (a retry)
  std::optional<Moment> started_at = {};   ///< of the last attempt
  std::optional<Moment> finished_at = {};  ///< of the job
  std::chrono::milliseconds
      wall_offset{};       ///< Moment + wall_offset = UTC, as known when it was accepted
  std::string input = {};  ///< only when it is about to run
};

}  // namespace jobs
