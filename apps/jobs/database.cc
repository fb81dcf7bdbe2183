#include "apps/jobs/database.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "apps/jobs/job_rows.h"
#include "apps/jobs/sqlite.h"
#include "otp/base/enum_names.h"
#include "otp/io/descriptor.h"

namespace jobs {
namespace {

using otp::io::Descriptor;

constexpr int kSchemaVersion = 1;
constexpr int kPruneMax = 500;

// The input and the outputs have tables of their own, as a row is rewritten whole at each change of
// state. An input is deleted when its job ends.
constexpr const char* kSchema = R"sql(
CREATE TABLE jobs(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  interruptions INTEGER NOT NULL DEFAULT 0,
  exit_status INTEGER,
  enqueued_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  wall_offset INTEGER NOT NULL,
  process TEXT
) STRICT;
CREATE INDEX jobs_by_state ON jobs(state, id);
CREATE INDEX jobs_by_end ON jobs(finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE inputs(id INTEGER PRIMARY KEY, input BLOB NOT NULL) STRICT;
CREATE TABLE results(
  id INTEGER PRIMARY KEY,
  output BLOB NOT NULL,
  output_truncated INTEGER NOT NULL,
  error BLOB NOT NULL,
  error_truncated INTEGER NOT NULL
) STRICT;
CREATE TABLE starts(kind TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE INDEX starts_by_time ON starts(at);
CREATE TABLE clock(
  one INTEGER PRIMARY KEY CHECK(one = 1),
  boot TEXT NOT NULL,
  elapsed INTEGER NOT NULL,
  moment INTEGER NOT NULL,
  wall_offset INTEGER NOT NULL
) STRICT;
PRAGMA user_version = 1;
)sql";

StoreError system_error(const std::string& path, int code) {
  StoreError error{.text = path + ": " + ::strerrordesc_np(code)};
  if (code == EACCES || code == EPERM || code == EROFS) error.kind = StoreError::Kind::read_only;
  if (code == ENOSPC || code == EDQUOT) error.kind = StoreError::Kind::full;
  return error;
}

/// Beyond a limit on file sizes a write must be an error, not the end of the node.
void ignore_sigxfsz() {
  struct sigaction current{};
  ::sigaction(SIGXFSZ, nullptr, &current);
  if (current.sa_handler == SIG_DFL) ::signal(SIGXFSZ, SIG_IGN);
}

/// Makes the file's folder and the file, readable by the owner whatever the umask.
void create_file(const std::string& path) {
  std::error_code code;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, code);
  if (code) throw system_error(folder.string(), code.value());
  const Descriptor made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made) {
    ::fchmod(made.get(), 0640);
  } else if (errno != EEXIST) {
    throw system_error(path, errno);
  }
}

/// Holds off other nodes. A predecessor of this very node may still be closing: waits a little for
/// it.
Descriptor lock_file(const std::string& path, std::chrono::milliseconds patience) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) throw system_error(path, errno);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw system_error(path, errno);
    if (std::chrono::steady_clock::now() >= deadline) {
      throw StoreError{.kind = StoreError::Kind::in_use,
                       .text = path + ": another node uses this database"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return file;
}

}  // namespace

/// The open database and its statements. Its methods throw StoreError.
struct Database::Connection {
  explicit Connection(const Options& wanted);

  void migrate();
  OperationResult apply(const InsertJob& operation, const ClockRecord& clock);
  OperationResult apply(const StartAttempt& operation, const ClockRecord& clock);
  OperationResult apply(const NoteProcess& operation, const ClockRecord& clock);
  OperationResult apply(const FinishAttempt& operation, const ClockRecord& clock);
  OperationResult apply(const CancelJob& operation, const ClockRecord& clock);
  void store_result(const FinishAttempt& operation);
  void store_clock(const ClockRecord& clock);
  void move(const std::string& kind, std::optional<State> from, std::optional<State> to);

  /// Runs `work` in one transaction: all of it, or nothing and the error.
  template <class T, class Work>
  Result<T> transaction(Work work);

  Options options;
  Descriptor lock;
  Sqlite db;
  Counts counts;      // as committed
  Counts new_counts;  // as of the open transaction

  struct Statements {
    explicit Statements(Sqlite& db);
    Statement insert, insert_input, take_input, find, begin_attempt, insert_start, prune_starts;
    Statement note, finish, finish_cancelled, cancel, put_result, delete_result, delete_input,
        put_clock;
  };
  std::optional<Statements> statements;
};

Database::Connection::Connection(const Options& wanted)
    : options(wanted),
      lock((create_file(wanted.path), lock_file(wanted.path + ".lock", wanted.busy_wait))),
      db(wanted.path, wanted.busy_wait) {
  if (db.read_only()) {
    throw StoreError{.kind = StoreError::Kind::read_only,
                     .text = wanted.path + ": the file cannot be written"};
  }
  db.run(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864");
  migrate();
  statements.emplace(db);
  Statement count(db, "SELECT kind, state, count(*) FROM jobs GROUP BY kind, state");
  while (count.step()) {
    counts[count.bytes(0)][static_cast<size_t>(state_named(count.bytes(1)))] = count.integer(2);
  }
}

void Database::Connection::migrate() {
  if (const std::string mode = db.text("PRAGMA journal_mode"); mode != "wal") {
    throw StoreError{
        .kind = StoreError::Kind::other,
        .text = options.path + ": this file system allows no write-ahead log (" + mode + ")"};
  }
  const int64_t version = db.number("PRAGMA user_version");
  if (version > kSchemaVersion) {
    throw StoreError{.kind = StoreError::Kind::newer,
                     .text = options.path + ": made by a later version (schema " +
                             std::to_string(version) + ", this program knows " +
                             std::to_string(kSchemaVersion) + ")"};
  }
  if (version == kSchemaVersion) return;  // no lock is taken: somebody may hold one for long
  db.run((std::string("BEGIN IMMEDIATE;") + kSchema + "COMMIT").c_str());
}

Database::Connection::Statements::Statements(Sqlite& db)
    : insert(db,
             "INSERT INTO jobs(kind, state, enqueued_at, due_at, wall_offset)"
             " VALUES(?1, 'queued', ?2, ?2, ?3)"),
      insert_input(db, "INSERT INTO inputs(id, input) VALUES(?, ?)"),
      take_input(db, "SELECT input FROM inputs WHERE id = ?"),
      find(db, find_sql().c_str()),
      begin_attempt(db,
                    "UPDATE jobs SET state = 'running', attempts = attempts + 1, started_at = ?,"
                    " process = NULL, exit_status = NULL WHERE id = ? AND state = 'queued'"
                    " RETURNING kind, attempts"),
      insert_start(db, "INSERT INTO starts(kind, at) VALUES(?, ?)"),
      prune_starts(db, "DELETE FROM starts WHERE at < ?"),
      note(db,
           "UPDATE jobs SET process = ? WHERE id = ? AND attempts = ? AND"
           " (state = 'running' OR (state = 'cancelled' AND process IS NOT NULL)) RETURNING id"),
      finish(db,
             "UPDATE jobs SET state = ?1, exit_status = ?2, finished_at = ?3, due_at = ?4,"
             " interruptions = interruptions + ?7, process = NULL"
             " WHERE id = ?5 AND attempts = ?6 AND state = 'running' RETURNING kind"),
      finish_cancelled(db,
                       "UPDATE jobs SET exit_status = ?, finished_at = ?, process = NULL"
                       " WHERE id = ? AND attempts = ? AND state = 'cancelled'"
                       " AND process IS NOT NULL RETURNING id"),
      cancel(db,
             "UPDATE jobs SET state = 'cancelled', finished_at = ?,"
             " process = CASE state WHEN 'running' THEN coalesce(process, '') END"
             " WHERE id = ? RETURNING id"),
      put_result(db, "INSERT OR REPLACE INTO results VALUES(?, ?, ?, ?, ?)"),
      delete_result(db, "DELETE FROM results WHERE id = ?"),
      delete_input(db, "DELETE FROM inputs WHERE id = ?"),
      put_clock(db, "INSERT OR REPLACE INTO clock VALUES(1, ?, ?, ?, ?)") {}

template <class T, class Work>
Database::Result<T> Database::Connection::transaction(Work work) {
  try {
    // IMMEDIATE: a deferred transaction that turns into a writing one would not wait for a lock.
    db.run("BEGIN IMMEDIATE");
    new_counts = counts;
    T value = work();
    db.run("COMMIT");
    counts = std::move(new_counts);
    return value;
  } catch (const StoreError& error) {
    db.rollback();
    return error;
  }
}

void Database::Connection::move(const std::string& kind, std::optional<State> from,
                                std::optional<State> to) {
  StateCounts& states = new_counts[kind];
  if (from) --states[static_cast<size_t>(*from)];
  if (to) ++states[static_cast<size_t>(*to)];
}

OperationResult Database::Connection::apply(const InsertJob& operation, const ClockRecord& clock) {
  statements->insert.bind_text(operation.kind)
      .bind(operation.at.count())
      .bind(clock.wall_offset.count())
      .run();
  Job job{.id = db.last_row(), .kind = operation.kind};
  job.enqueued_at = job.due_at = operation.at;
  job.wall_offset = clock.wall_offset;
  statements->insert_input.bind(job.id).bind_bytes(operation.input).run();
  move(job.kind, std::nullopt, State::queued);
  return {.applied = true, .job = std::move(job), .state_before = std::nullopt};
}

OperationResult Database::Connection::apply(const StartAttempt& operation, const ClockRecord&) {
  Statement& begin = statements->begin_attempt.bind(operation.at.count()).bind(operation.id);
  OperationResult result;
  if (begin.step()) {
    result.applied = true;
    const std::string kind = begin.bytes(0);
    const bool again = begin.integer(1) > 1;
    begin.run();
    move(kind, State::queued, State::running);
    if (again) statements->delete_result.bind(operation.id).run();
    statements->insert_start.bind_text(kind).bind(operation.at.count()).run();
    result.state_before = State::queued;
  }
  result.job = find_job(statements->find, operation.id);
  if (!result.job) return result;
  if (!result.applied) {
    result.state_before = result.job->state;
    return result;
  }
  Statement& input = statements->take_input.bind(operation.id);
  while (input.step()) result.job->input = input.bytes(0);
  return result;
}

OperationResult Database::Connection::apply(const NoteProcess& operation, const ClockRecord&) {
  Statement& note = statements->note.bind_text(operation.process)
                        .bind(operation.id)
                        .bind(int64_t{operation.attempt});
  OperationResult result{.applied = note.step(), .job = {}, .state_before = {}};
  note.reset();
  return result;
}

OperationResult Database::Connection::apply(const FinishAttempt& operation, const ClockRecord&) {
  const auto status = operation.exit_status ? std::optional<int64_t>(*operation.exit_status)
                                            : std::optional<int64_t>();
  const auto finished = is_final(operation.state) ? std::optional<int64_t>(operation.at.count())
                                                  : std::optional<int64_t>();
  Statement& finish = statements->finish.bind_text(otp::enum_name(operation.state))
                          .bind(status)
                          .bind(finished)
                          .bind(operation.due.count())
                          .bind(operation.id)
                          .bind(int64_t{operation.attempt})
                          .bind(int64_t{operation.interrupted});
  if (finish.step()) {
    const std::string kind = finish.bytes(0);
    finish.run();
    move(kind, State::running, operation.state);
    store_result(operation);
    if (is_final(operation.state)) statements->delete_input.bind(operation.id).run();
    return {.applied = true, .job = {}, .state_before = State::running};
  }
  Statement& cancelled = statements->finish_cancelled.bind(status)
                             .bind(operation.at.count())
                             .bind(operation.id)
                             .bind(int64_t{operation.attempt});
  if (!cancelled.step()) return {};
  cancelled.run();
  store_result(operation);
  return {.applied = true, .job = {}, .state_before = State::cancelled};
}

void Database::Connection::store_result(const FinishAttempt& operation) {
  statements->put_result.bind(operation.id)
      .bind_bytes(operation.output)
      .bind(int64_t{operation.output_truncated})
      .bind_bytes(operation.error)
      .bind(int64_t{operation.error_truncated})
      .run();
}

OperationResult Database::Connection::apply(const CancelJob& operation, const ClockRecord&) {
  OperationResult result{
      .applied = false, .job = find_job(statements->find, operation.id), .state_before = {}};
  if (!result.job) return result;
  result.state_before = result.job->state;
  if (is_final(result.job->state)) return result;
  statements->cancel.bind(operation.at.count()).bind(operation.id).run();
  statements->delete_input.bind(operation.id).run();
  move(result.job->kind, result.job->state, State::cancelled);
  result.job->state = State::cancelled;
  result.job->finished_at = operation.at;
  result.applied = true;
  return result;
}

void Database::Connection::store_clock(const ClockRecord& clock) {
  statements->put_clock.bind_text(clock.boot)
      .bind(clock.elapsed.count())
      .bind(clock.moment.count())
      .bind(clock.wall_offset.count())
      .run();
}

Database::Database(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Database::Result<Database> Database::open(const Options& options) {
  ignore_sigxfsz();
  try {
    return Database(std::make_unique<Connection>(options));
  } catch (const StoreError& error) {
    return error;
  }
}

Database::Result<std::vector<OperationResult>> Database::apply(const std::vector<Operation>& batch,
                                                               const ClockRecord& clock) {
  Connection& c = *connection_;
  return c.transaction<std::vector<OperationResult>>([&] {
    std::vector<OperationResult> results;
    results.reserve(batch.size());
    bool started = false;
    for (const Operation& operation : batch) {
      started = started || std::holds_alternative<StartAttempt>(operation);
      results.push_back(
          std::visit([&](const auto& one) { return c.apply(one, clock); }, operation));
    }
    const Moment old = clock.moment - c.options.starts_kept;
    if (started) c.statements->prune_starts.bind(old.count()).run();
    c.store_clock(clock);
    return results;
  });
}

const Counts& Database::counts() const { return connection_->counts; }

Database::Result<std::optional<ClockRecord>> Database::clock() {
  return reading<std::optional<ClockRecord>>([&] {
    std::optional<ClockRecord> record;
    Statement row(connection_->db, "SELECT boot, elapsed, moment, wall_offset FROM clock");
    while (row.step()) {
      record = ClockRecord{.boot = row.bytes(0),
                           .elapsed = moment(row.integer(1)),
                           .moment = moment(row.integer(2)),
                           .wall_offset = moment(row.integer(3))};
    }
    return record;
  });
}

Database::Result<std::vector<std::string>> Database::running_processes() {
  return reading<std::vector<std::string>>([&] {
    std::vector<std::string> processes;
    Statement rows(connection_->db,
                   "SELECT process FROM jobs WHERE state IN ('running', 'cancelled')"
                   " AND process IS NOT NULL AND process <> ''");
    while (rows.step()) processes.push_back(rows.bytes(0));
    return processes;
  });
}

Database::Result<Recovered> Database::recover(const Recovery& how) {
  Connection& c = *connection_;
  return c.transaction<Recovered>([&] {
    struct Left {
      JobId id;
      std::string kind;
      State state;
      int interruptions;
    };
    std::vector<Left> left;
    Statement rows(c.db,
                   "SELECT id, kind, state, interruptions FROM jobs"
                   " WHERE state IN ('running', 'queued') ORDER BY id");
    while (rows.step()) {
      const State state = state_named(rows.bytes(2));
      const int interruptions = static_cast<int>(rows.integer(3)) + (state == State::running);
      left.push_back({rows.integer(0), rows.bytes(1), state, interruptions});
    }
    Statement requeue(c.db,
                      "UPDATE jobs SET state = 'queued', interruptions = ?, due_at = ?,"
                      " process = NULL WHERE id = ?");
    Statement fail(c.db,
                   "UPDATE jobs SET state = 'failed', interruptions = ?, finished_at = ?,"
                   " process = NULL WHERE id = ?");
    Recovered recovered;
    for (const Left& job : left) {
      const bool known = how.known(job.kind);
      if (known && job.state == State::queued) continue;
      if (known && how.run_again(job.kind, job.interruptions)) {
        requeue.bind(int64_t{job.interruptions}).bind(how.at.count()).bind(job.id).run();
        c.move(job.kind, job.state, State::queued);
        ++recovered.requeued;
        continue;
      }
      fail.bind(int64_t{job.interruptions}).bind(how.at.count()).bind(job.id).run();
      c.store_result({.id = job.id,
                      .error = known ? "interrupted: the service ended while the command ran"
                                     : "the kind is no longer configured"});
      c.statements->delete_input.bind(job.id).run();
      c.move(job.kind, job.state, State::failed);
      ++recovered.failed;
    }
    c.db.run("UPDATE jobs SET process = NULL WHERE state = 'cancelled' AND process IS NOT NULL");
    return recovered;
  });
}

Database::Result<std::vector<QueuedJob>> Database::queued() {
  return reading<std::vector<QueuedJob>>([&] {
    std::vector<QueuedJob> jobs;
    Statement rows(connection_->db,
                   "SELECT id, kind, due_at FROM jobs WHERE state = 'queued' ORDER BY id");
    while (rows.step()) jobs.push_back({rows.integer(0), rows.bytes(1), moment(rows.integer(2))});
    return jobs;
  });
}

Database::Result<std::vector<RecordedStart>> Database::starts_since(Moment since) {
  return reading<std::vector<RecordedStart>>([&] {
    std::vector<RecordedStart> starts;
    Statement rows(connection_->db, "SELECT kind, at FROM starts WHERE at >= ? ORDER BY at");
    rows.bind(since.count());
    while (rows.step()) starts.push_back({rows.bytes(0), moment(rows.integer(1))});
    return starts;
  });
}

Database::Result<int> Database::prune(int64_t keep_max, Moment before) {
  Connection& c = *connection_;
  int64_t ended = 0;
  for (const auto& [kind, states] : c.counts) {
    for (const auto& named : otp::enum_names<State>) {
      if (is_final(named.value)) ended += states[static_cast<size_t>(named.value)];
    }
  }
  const int64_t excess = std::clamp<int64_t>(ended - keep_max, 0, kPruneMax);
  return c.transaction<int>([&] {
    std::vector<JobId> old;
    Statement oldest(c.db,
                     "SELECT id, finished_at FROM jobs WHERE finished_at IS NOT NULL AND"
                     " process IS NULL ORDER BY finished_at LIMIT ?");
    oldest.bind(int64_t{kPruneMax});
    while (oldest.step()) {
      const bool beyond = static_cast<int64_t>(old.size()) < excess;
      if (beyond || moment(oldest.integer(1)) < before) old.push_back(oldest.integer(0));
    }
    Statement remove(c.db, "DELETE FROM jobs WHERE id = ? RETURNING kind, state");
    Statement remove_result(c.db, "DELETE FROM results WHERE id = ?");
    for (const JobId id : old) {
      remove.bind(id);
      while (remove.step()) c.move(remove.bytes(0), state_named(remove.bytes(1)), std::nullopt);
      remove_result.bind(id).run();
    }
    return static_cast<int>(old.size());
  });
}

}  // namespace jobs
