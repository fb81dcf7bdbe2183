#include "apps/jobs/database.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "apps/jobs/database_reader.h"
#include "apps/jobs/sqlite.h"

namespace jobs {
namespace {

using std::chrono::milliseconds;

/// A folder of its own for each test.
struct Folder {
  Folder() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string name = std::string(base == nullptr ? "/tmp" : base) + "/jobs_db_XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string database() const { return path + "/state/jobs.db"; }
  std::string path;
};

template <class T>
T must(std::variant<T, StoreError> result) {
  if (const auto* error = std::get_if<StoreError>(&result)) FAIL(error->text);
  return std::get<0>(std::move(result));
}

template <class T>
StoreError must_fail(const std::variant<T, StoreError>& result) {
  REQUIRE(result.index() == 1);
  return std::get<1>(result);
}

Database opened(const Folder& folder, milliseconds busy_wait = milliseconds(100)) {
  return must(Database::open({.path = folder.database(), .busy_wait = busy_wait}));
}

ClockRecord at(int64_t ms) {
  return {.boot = "b",
          .elapsed = milliseconds(ms),
          .moment = Moment(ms),
          .wall_offset = milliseconds(1000)};
}

OperationResult apply_one(Database& db, Operation operation) {
  auto results = must(db.apply({std::move(operation)}, at(0)));
  REQUIRE(results.size() == 1);
  return results[0];
}

JobId insert(Database& db, const std::string& kind = "sha256", const std::string& input = "x") {
  return apply_one(db, InsertJob{.kind = kind, .input = input, .at = Moment(10)}).job->id;
}

DatabaseReader reader_of(const Folder& folder) {
  return must(DatabaseReader::open(folder.database()));
}

Job found(const Folder& folder, JobId id) {
  auto job = must(reader_of(folder).find(id));
  REQUIRE(job);
  return *job;
}

int64_t count(const Database& db, const std::string& kind, State state) {
  const auto at = db.counts().find(kind);
  return at == db.counts().end() ? 0 : at->second[static_cast<size_t>(state)];
}

const Recovery kAlwaysAgain{.run_again = [](const std::string&, int) { return true; },
                            .known = [](const std::string&) { return true; },
                            .at = Moment(500)};

}  // namespace

TEST_CASE("a job goes from queued over running to done", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  const std::string input("in\0put\xff", 7);
  const JobId id = insert(db, "sha256", input);
  CHECK(found(folder, id).state == State::queued);
  CHECK(count(db, "sha256", State::queued) == 1);

  const OperationResult started = apply_one(db, StartAttempt{.id = id, .at = Moment(20)});
  REQUIRE(started.applied);
  CHECK(started.job->input == input);
  CHECK(started.job->attempts == 1);
  CHECK(started.job->state == State::running);
  CHECK(count(db, "sha256", State::running) == 1);

  const std::string output("\xff\0o", 3);
  CHECK(apply_one(db, FinishAttempt{.id = id,
                                    .attempt = 1,
                                    .state = State::done,
                                    .exit_status = 0,
                                    .output = output,
                                    .output_truncated = true,
                                    .error = "e",
                                    .at = Moment(30)})
            .applied);
  const Job job = found(folder, id);
  CHECK(job.state == State::done);
  CHECK(job.exit_status == 0);
  CHECK(job.output == output);
  CHECK(job.output_truncated);
  CHECK(job.error == "e");
  CHECK(!job.error_truncated);
  CHECK(job.enqueued_at == Moment(10));
  CHECK(job.started_at == Moment(20));
  CHECK(job.finished_at == Moment(30));
  CHECK(job.wall_offset == milliseconds(1000));
  CHECK(count(db, "sha256", State::done) == 1);
  CHECK(count(db, "sha256", State::running) == 0);
  CHECK(count(db, "sha256", State::queued) == 0);
}

TEST_CASE("an operation that does not fit the job's state is not applied", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  const JobId id = insert(db);
  const FinishAttempt finish{.id = id, .attempt = 1, .state = State::done, .at = Moment(1)};
  CHECK(!apply_one(db, finish).applied);  // it has not started
  CHECK(apply_one(db, StartAttempt{.id = id}).applied);
  CHECK(!apply_one(db, StartAttempt{.id = id}).applied);                 // it runs already
  CHECK(!apply_one(db, FinishAttempt{.id = id, .attempt = 2}).applied);  // another attempt
  CHECK(apply_one(db, finish).applied);
  CHECK(!apply_one(db, finish).applied);  // it has ended
  const OperationResult late = apply_one(db, CancelJob{.id = id});
  CHECK(!late.applied);
  CHECK(late.state_before == State::done);
  CHECK(!apply_one(db, CancelJob{.id = 999}).job);
  CHECK(!apply_one(db, StartAttempt{.id = 999}).job);
  CHECK(!must(reader_of(folder).find(999)));
}

TEST_CASE("a failed attempt is queued again and counts", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  const JobId id = insert(db, "fail", "again");
  apply_one(db, StartAttempt{.id = id, .at = Moment(20)});
  CHECK(apply_one(db, FinishAttempt{.id = id,
                                    .attempt = 1,
                                    .state = State::queued,
                                    .exit_status = 3,
                                    .error = "no",
                                    .at = Moment(30),
                                    .due = Moment(3030)})
            .applied);
  const Job job = found(folder, id);
  CHECK(job.state == State::queued);
  CHECK(job.due_at == Moment(3030));
  CHECK(job.exit_status == 3);
  CHECK(job.error == "no");
  CHECK(!job.finished_at);
  const auto queue = must(db.queued());
  REQUIRE(queue.size() == 1);
  CHECK(queue[0].due == Moment(3030));
  const OperationResult second = apply_one(db, StartAttempt{.id = id, .at = Moment(3030)});
  CHECK(second.job->attempts == 2);
  CHECK(second.job->input == "again");
  const Job running = found(folder, id);  // nothing is left of the first attempt
  CHECK(!running.exit_status);
  CHECK(running.error.empty());
}

TEST_CASE("cancelling a running job is final and keeps what the command left", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  const JobId id = insert(db);
  apply_one(db, StartAttempt{.id = id, .at = Moment(20)});
  CHECK(apply_one(db, NoteProcess{.id = id, .attempt = 1, .process = "12:34:56:b"}).applied);
  const OperationResult cancelled = apply_one(db, CancelJob{.id = id, .at = Moment(40)});
  CHECK(cancelled.applied);
  CHECK(cancelled.state_before == State::running);
  CHECK(cancelled.job->state == State::cancelled);
  CHECK(must(db.running_processes()) == std::vector<std::string>{"12:34:56:b"});
  CHECK(apply_one(
            db,
            FinishAttempt{
                .id = id, .attempt = 1, .state = State::failed, .output = "part", .at = Moment(50)})
            .applied);
  const Job job = found(folder, id);
  CHECK(job.state == State::cancelled);
  CHECK(job.output == "part");
  CHECK(job.finished_at == Moment(50));
  CHECK(must(db.running_processes()).empty());
  CHECK(count(db, "sha256", State::cancelled) == 1);

  const JobId waiting = insert(db);
  CHECK(apply_one(db, CancelJob{.id = waiting}).state_before == State::queued);
  CHECK(!apply_one(db, StartAttempt{.id = waiting}).applied);
  CHECK(!apply_one(db, FinishAttempt{.id = waiting, .attempt = 0}).applied);
}

TEST_CASE("a batch is applied in order and ids rise", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  std::vector<Operation> batch;
  for (int i = 0; i < 100; ++i) batch.push_back(InsertJob{.kind = "k" + std::to_string(i % 2)});
  batch.push_back(StartAttempt{.id = 1});
  batch.push_back(CancelJob{.id = 2});
  const auto results = must(db.apply(batch, at(0)));
  for (int i = 0; i < 100; ++i) CHECK(results[static_cast<size_t>(i)].job->id == i + 1);
  CHECK(results[100].applied);
  CHECK(results[101].applied);
  CHECK(count(db, "k0", State::running) == 1);
  CHECK(count(db, "k1", State::cancelled) == 1);
  CHECK(count(db, "k1", State::queued) == 49);
}

TEST_CASE("lists are newest first, by state, page by page", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  for (int i = 0; i < 10; ++i) insert(db);
  for (const JobId id : {2, 4, 6}) apply_one(db, CancelJob{.id = id});
  const auto ids = [&](const ListQuery& query) {
    std::vector<JobId> list;
    for (const Job& job : must(reader_of(folder).list(query)).jobs) list.push_back(job.id);
    return list;
  };
  CHECK(ids({.limit = 3}) == std::vector<JobId>{10, 9, 8});
  CHECK(must(reader_of(folder).list({.limit = 3})).more);
  CHECK(ids({.limit = 3, .before = 8}) == std::vector<JobId>{7, 6, 5});
  CHECK(ids({.limit = 10, .before = 2}) == std::vector<JobId>{1});
  CHECK(!must(reader_of(folder).list({.limit = 1, .before = 2})).more);
  CHECK(ids({.state = State::cancelled}) == std::vector<JobId>{6, 4, 2});
  CHECK(ids({.state = State::done}).empty());
}

TEST_CASE("a list ends early when its jobs' output is large", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  for (int i = 0; i < 5; ++i) {
    const JobId id = insert(db);
    apply_one(db, StartAttempt{.id = id});
    apply_one(db, FinishAttempt{.id = id, .attempt = 1, .output = std::string(1000, 'o')});
  }
  const JobList list = must(reader_of(folder).list({.limit = 5, .bytes_max = 1500}));
  CHECK(list.jobs.size() == 2);
  CHECK(list.more);
  CHECK(must(reader_of(folder).list({.limit = 5, .bytes_max = 0})).jobs.size() == 1);
}

TEST_CASE("a killed service finds its jobs again, and a second run shows in attempts",
          "[jobs][database]") {
  Folder folder;
  const pid_t service = ::fork();
  if (service == 0) {
    Database db = opened(folder);
    insert(db);
    insert(db);
    insert(db, "gone");
    apply_one(db, StartAttempt{.id = 1, .at = Moment(20)});
    apply_one(db, NoteProcess{.id = 1, .attempt = 1, .process = "77:1:1:b"});
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(service, nullptr, 0);
  Database db = opened(folder);
  CHECK(count(db, "sha256", State::running) == 1);
  CHECK(count(db, "sha256", State::queued) == 1);
  CHECK(must(db.running_processes()) == std::vector<std::string>{"77:1:1:b"});
  Recovery how = kAlwaysAgain;
  how.known = [](const std::string& kind) { return kind != "gone"; };
  const Recovered recovered = must(db.recover(how));
  CHECK(recovered.requeued == 1);
  CHECK(recovered.failed == 1);
  CHECK(found(folder, 3).state == State::failed);
  CHECK(found(folder, 3).error == "the kind is no longer configured");
  CHECK(found(folder, 3).finished_at == Moment(500));
  CHECK(must(db.queued()).size() == 2);
  CHECK(must(db.running_processes()).empty());
  const OperationResult again = apply_one(db, StartAttempt{.id = 1, .at = Moment(600)});
  CHECK(again.job->attempts == 2);
  CHECK(again.job->interruptions == 1);
  CHECK(again.job->input == "x");
}

TEST_CASE("a job that ends with the service each time is not run for ever", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  const JobId id = insert(db);
  Recovery how = kAlwaysAgain;
  how.run_again = [](const std::string&, int interruptions) { return interruptions < 3; };
  for (int i = 0; i < 2; ++i) {
    apply_one(db, StartAttempt{.id = id});
    CHECK(must(db.recover(how)).requeued == 1);
  }
  apply_one(db, StartAttempt{.id = id});
  CHECK(must(db.recover(how)).failed == 1);
  CHECK(found(folder, id).attempts == 3);
  CHECK(found(folder, id).error == "interrupted: the service ended while the command ran");
}

TEST_CASE("a job cancelled while it ran is not run again after a crash", "[jobs][database]") {
  Folder folder;
  {
    Database db = opened(folder);
    insert(db);
    apply_one(db, StartAttempt{.id = 1});
    apply_one(db, CancelJob{.id = 1});
  }
  Database db = opened(folder);
  CHECK(must(db.recover(kAlwaysAgain)).requeued == 0);
  CHECK(found(folder, 1).state == State::cancelled);
  CHECK(must(db.queued()).empty());
}

TEST_CASE("start times survive and old ones are forgotten", "[jobs][database]") {
  Folder folder;
  {
    Database db = opened(folder);
    insert(db);
    insert(db, "fail");
    must(db.apply({StartAttempt{.id = 1, .at = Moment(1000)}}, at(1000)));
    must(db.apply({StartAttempt{.id = 2, .at = Moment(2000)}}, at(2000)));
  }
  Database db = opened(folder);
  const auto starts = must(db.starts_since(Moment(1000)));
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].kind == "sha256");
  CHECK(starts[0].at == Moment(1000));
  CHECK(starts[1].kind == "fail");
  CHECK(must(db.starts_since(Moment(1001))).size() == 1);
  insert(db);
  const int64_t later = 3'600'000 + 1500;
  must(db.apply({StartAttempt{.id = 3, .at = Moment(later)}}, at(later)));
  CHECK(must(db.starts_since(Moment(0))).size() == 2);
}

TEST_CASE("the clock of the last batch is there after a restart", "[jobs][database]") {
  Folder folder;
  {
    Database db = opened(folder);
    CHECK(!must(db.clock()));
    must(db.apply({}, at(42)));
  }
  Database db = opened(folder);
  CHECK(must(db.clock()) == at(42));
}

TEST_CASE("ended jobs beyond the limit or the age are deleted, oldest first", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  for (int64_t i = 1; i <= 10; ++i) insert(db);
  for (const JobId id : {3, 1, 2, 5}) apply_one(db, CancelJob{.id = id, .at = Moment(100 + id)});
  CHECK(must(db.prune(100, Moment(0))) == 0);
  CHECK(must(db.prune(3, Moment(0))) == 1);
  CHECK(!must(reader_of(folder).find(1)));
  CHECK(must(db.prune(100, Moment(104))) == 2);
  CHECK(found(folder, 5).state == State::cancelled);
  CHECK(count(db, "sha256", State::cancelled) == 1);
  CHECK(count(db, "sha256", State::queued) == 6);
  // An id is never given twice.
  apply_one(db, CancelJob{.id = 10, .at = Moment(0)});
  CHECK(must(db.prune(0, Moment(0))) == 2);
  CHECK(insert(db) == 11);
}

TEST_CASE("R-034 somebody else's write lock is a bounded wait and an error, not a loss",
          "[jobs][database]") {
  Folder folder;
  Database db = opened(folder, milliseconds(30));
  insert(db);
  Sqlite other(folder.database(), milliseconds(1000));
  other.run("BEGIN IMMEDIATE");
  const std::vector<Operation> batch{InsertJob{.kind = "sha256"}, StartAttempt{.id = 1}};
  const auto before = std::chrono::steady_clock::now();
  const StoreError error = must_fail(db.apply(batch, at(1)));
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(5));
  CHECK(error.kind == StoreError::Kind::busy);
  CHECK(error.passes());
  CHECK(found(folder, 1).state == State::queued);  // reading goes on
  CHECK(must(reader_of(folder).list({})).jobs.size() == 1);
  other.run("COMMIT");
  CHECK(must(db.apply(batch, at(2)))[0].job->id == 2);
  CHECK(count(db, "sha256", State::running) == 1);
}

TEST_CASE("R-034 a long reader does not hold up writing", "[jobs][database]") {
  Folder folder;
  Database db = opened(folder, milliseconds(30));
  insert(db);
  Sqlite reader(folder.database(), milliseconds(1000));
  reader.run("BEGIN");
  CHECK(reader.number("SELECT count(*) FROM jobs") == 1);
  for (int i = 0; i < 50; ++i) insert(db);
  CHECK(reader.number("SELECT count(*) FROM jobs") == 1);
  reader.run("COMMIT");
  CHECK(reader.number("SELECT count(*) FROM jobs") == 51);
}

TEST_CASE("a reader sees what is committed, and only that, while a batch is written",
          "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  DatabaseReader reader = reader_of(folder);
  CHECK(!must(reader.find(1)));
  insert(db);
  CHECK(must(reader.find(1))->state == State::queued);
  Sqlite other(folder.database(), milliseconds(1000));
  other.run("BEGIN IMMEDIATE; DELETE FROM jobs");
  CHECK(must(reader.list({})).jobs.size() == 1);
  other.run("COMMIT");
  CHECK(must(reader.list({})).jobs.empty());
}

TEST_CASE("R-034 a lock held during the start is no obstacle, or an error to try again on",
          "[jobs][database]") {
  Folder folder;
  { opened(folder); }
  {
    Sqlite other(folder.database(), milliseconds(1000));
    other.run("BEGIN EXCLUSIVE");
    Database db = opened(folder);
    CHECK(must_fail(db.recover(kAlwaysAgain)).kind == StoreError::Kind::busy);
    CHECK(must(db.queued()).empty());
    other.run("COMMIT");
    must(db.recover(kAlwaysAgain));
  }
  Sqlite exclusive(folder.database(), milliseconds(1000));
  exclusive.run("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  const auto refused = Database::open({.path = folder.database(), .busy_wait = milliseconds(30)});
  CHECK(must_fail(refused).kind == StoreError::Kind::busy);
}

TEST_CASE("a second node on the same database is refused", "[jobs][database]") {
  Folder folder;
  Database first = opened(folder);
  const StoreError error =
      must_fail(Database::open({.path = folder.database(), .busy_wait = milliseconds(20)}));
  CHECK(error.kind == StoreError::Kind::in_use);
  CHECK(error.text.find(folder.database()) != std::string::npos);
}

TEST_CASE("a predecessor that is still closing is waited for", "[jobs][database]") {
  Folder folder;
  auto first = std::make_unique<Database>(opened(folder));
  std::thread closes([&] { first.reset(); });
  opened(folder, milliseconds(10'000));
  closes.join();
}

TEST_CASE("R-018 a file size limit is a full disk: nothing is lost, later it works again",
          "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  insert(db);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit low{.rlim_cur = 256 << 10, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &low);
  const auto refused =
      db.apply({InsertJob{.kind = "big", .input = std::string(1 << 20, 'b')}}, at(1));
  const auto small = reader_of(folder).find(1);
  ::setrlimit(RLIMIT_FSIZE, &before);
  const StoreError error = must_fail(refused);
  INFO(error.text);
  CHECK(error.kind == StoreError::Kind::full);
  CHECK(error.text.find(folder.database()) != std::string::npos);
  CHECK(must(small)->id == 1);
  CHECK(count(db, "big", State::queued) == 0);
  CHECK(insert(db) == 2);
}

TEST_CASE("R-018 a folder that cannot be written gives one line with the path",
          "[jobs][database]") {
  const StoreError error = must_fail(Database::open({.path = "/proc/nowhere/jobs.db"}));
  CHECK(error.text.find("/proc/nowhere") != std::string::npos);
  CHECK(error.text.find('\n') == std::string::npos);
}

TEST_CASE("what is not a database, or a later one, is refused", "[jobs][database]") {
  Folder folder;
  { opened(folder); }
  {
    Sqlite other(folder.database(), milliseconds(100));
    other.run("PRAGMA user_version = 99");
  }
  CHECK(must_fail(Database::open({.path = folder.database()})).kind == StoreError::Kind::newer);
  std::ofstream(folder.path + "/text.db") << std::string(10'000, 'x');
  const auto text = Database::open({.path = folder.path + "/text.db"});
  CHECK(must_fail(text).kind == StoreError::Kind::corrupt);
}

TEST_CASE("R-017 under umask 0777 the database can be opened again", "[jobs][database]") {
  Folder folder;
  std::filesystem::create_directories(folder.path + "/state");
  const mode_t before = ::umask(0777);
  {
    Database db = opened(folder);
    insert(db);
  }
  ::umask(before);
  struct stat info{};
  ::stat(folder.database().c_str(), &info);
  CHECK((info.st_mode & 0777) == 0640);
  Database db = opened(folder);
  CHECK(found(folder, 1).state == State::queued);
}

TEST_CASE("the write-ahead log is on and other programs can read the database",
          "[jobs][database]") {
  Folder folder;
  Database db = opened(folder);
  insert(db, "sha256", "visible");
  Sqlite other(folder.database(), milliseconds(100));
  CHECK(other.text("PRAGMA journal_mode") == "wal");
  CHECK(other.text("SELECT state FROM jobs WHERE id = 1") == "queued");
}

}  // namespace jobs
