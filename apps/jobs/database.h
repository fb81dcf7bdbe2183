#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/jobs/clock.h"
#include "apps/jobs/job.h"
#include "apps/jobs/store_error.h"

namespace jobs {

// ---- What can be done to jobs. Each operation is one element of a batch.

/// Accepts a job. Result: the job, queued.
struct InsertJob {
  std::string kind = {};
  std::string input = {};
  Moment at{};
};
/// Counts an attempt and its start time before the command starts, so that no crash can make a run
/// or a start unseen. What the attempt before has left, output and error, is gone. Result: the job
/// with its input; not applied when it is no longer queued
/// (cancelled).
struct StartAttempt {
  JobId id = 0;
  Moment at{};
};
/// Writes down which OS process runs the attempt (io::ProcessIdentity as text).
struct NoteProcess {
  JobId id = 0;
  int attempt = 0;
  std::string process = {};
};
/// Ends an attempt: `state` is final, or `queued` for a retry at `due`. Not applied when that
/// attempt is not the running one. A job that was cancelled meanwhile stays so and only keeps what
/// the command left.
struct FinishAttempt {
  JobId id = 0;
  int attempt = 0;
  State state = State::done;
  std::optional<int> exit_status = {};
  std::string output = {};
  bool output_truncated = false;
  std::string error = {};
  bool error_truncated = false;
  bool interrupted = false;  ///< by the service, not by itself: no retry is used up
  Moment at{};
  Moment due{};
};
/// Cancels a queued or running job; a running command is the caller's to kill. Result: the job; not
/// applied when it had ended before.
struct CancelJob {
  JobId id = 0;
  Moment at{};
};
using Operation = std::variant<InsertJob, StartAttempt, NoteProcess, FinishAttempt, CancelJob>;

/// What an operation did.
struct OperationResult {
  bool applied = false;
  std::optional<Job> job = {};             ///< nothing: no such job, or the operation gives none
  std::optional<State> state_before = {};  ///< of an existing job
};

// ---- What can be asked.

struct ListQuery {
  std::optional<State> state = {};
  int limit = 50;
  JobId before = 0;  ///< only jobs with a smaller id; 0: from the newest
  /// Of output and error together: the list ends early beyond this. Not more than a page of it is
  /// worth having, as a client that asks and does not read keeps the answer in memory.
  size_t bytes_max = 256 << 10;
};
struct JobList {
  std::vector<Job> jobs;  ///< newest first, without input
  bool more = false;      ///< there are older ones: ask again with before = the last one's id
};

struct QueuedJob {
  JobId id = 0;
  std::string kind;
  Moment due{};
};
struct RecordedStart {
  std::string kind;
  Moment at{};
};

/// Number of stored jobs by state, in the order of State.
using StateCounts = std::array<int64_t, 6>;
using Counts = std::map<std::string, StateCounts>;

/// How to go on with a job that was running when the service ended.
struct Recovery {
  /// Called for each such job with its kind and how often it has been interrupted, this time
  /// included.
  std::function<bool(const std::string& kind, int interruptions)> run_again;
  /// Called for each queued job's kind. One that is configured no more fails its jobs.
  std::function<bool(const std::string& kind)> known;
  Moment at{};
};
struct Recovered {
  int requeued = 0;
  int failed = 0;
};

/// The jobs on disk: SQLite, synchronous, one owner.
///
/// Every method may block (a disk, somebody else's lock): call it on the blocking lane. A batch is
/// one transaction and one fsync (WAL with synchronous=FULL), applied whole or not at all: collect
/// what has come while the last batch was written, then apply it. After apply() has returned, its
/// effects survive a power failure.
///
/// Errors are values (StoreError) and leave the database as it was. A connection that failed with
/// anything but `busy` or `full` is best closed and opened anew.
///
/// Another program may read, and write if it must: a wait for its lock ends after busy_wait. A
/// second *node* is refused by a lock on `PATH.lock`. No temporary file is ever made elsewhere.
///
/// What clients want to see is read by a DatabaseReader.
class Database {
 public:
  struct Options {
    std::string path;
    std::chrono::milliseconds busy_wait{2000};
    /// Start times are kept this long; a rate below one start in this time cannot be rebuilt.
    std::chrono::milliseconds starts_kept{std::chrono::hours(1)};
  };
  template <class T>
  using Result = std::variant<T, StoreError>;

  static Result<Database> open(const Options& options);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  /// Applies all operations, in order. Takes: clock: now, stored with them.
  Result<std::vector<OperationResult>> apply(const std::vector<Operation>& batch,
                                             const ClockRecord& clock);

  /// From memory: as of the last successful change. Never blocks.
  const Counts& counts() const;

  // For the start of the service, in this order.
  Result<std::optional<ClockRecord>> clock();
  /// NoteProcess texts of jobs that were running: kill what is left of them before recover().
  Result<std::vector<std::string>> running_processes();
  Result<Recovered> recover(const Recovery& how);
  Result<std::vector<QueuedJob>> queued();  ///< oldest first
  Result<std::vector<RecordedStart>> starts_since(Moment since);

  /// Deletes ended jobs beyond `keep_max` and those that ended before `before`, the oldest first,
  /// at most 500 a call so that no transaction is long. Returns how many; 0: nothing left to
  /// delete.
  Result<int> prune(int64_t keep_max, Moment before);

 private:
  struct Connection;
  explicit Database(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace jobs
