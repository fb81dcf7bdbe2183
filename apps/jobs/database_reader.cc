#include "apps/jobs/database_reader.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "apps/jobs/job_rows.h"
#include "apps/jobs/sqlite.h"
#include "otp/base/enum_names.h"

namespace jobs {
namespace {

// Readers wait for nobody but one who mends the log after a crash.
constexpr std::chrono::milliseconds kReaderWait{2000};

}  // namespace

/// Its errors are StoreErrors, thrown.
struct DatabaseReader::Connection {
  explicit Connection(const std::string& path)
      : db(path, kReaderWait, Sqlite::Access::read), find(db, find_sql().c_str()) {}

  JobList list(const ListQuery& query);

  Sqlite db;
  Statement find;
};

JobList DatabaseReader::Connection::list(const ListQuery& query) {
  std::string sql = std::string(kColumns) + " WHERE id < ?1";
  if (query.state) sql += " AND state = ?2";
  sql += " ORDER BY id DESC";
  Statement rows(db, sql.c_str());
  rows.bind(query.before > 0 ? query.before : INT64_MAX);
  if (query.state) rows.bind_text(otp::enum_name(*query.state));
  JobList list;
  size_t bytes = 0;
  while (rows.step()) {
    const bool full = list.jobs.size() >= static_cast<size_t>(query.limit);
    if (full || (bytes >= query.bytes_max && !list.jobs.empty())) {
      list.more = true;
      break;
    }
    list.jobs.push_back(job_of(rows));
    bytes += list.jobs.back().output.size() + list.jobs.back().error.size();
  }
  return list;
}

DatabaseReader::DatabaseReader(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
DatabaseReader::DatabaseReader(DatabaseReader&&) noexcept = default;
DatabaseReader& DatabaseReader::operator=(DatabaseReader&&) noexcept = default;
DatabaseReader::~DatabaseReader() = default;

Database::Result<DatabaseReader> DatabaseReader::open(const std::string& path) {
  return reading<DatabaseReader>(
      [&] { return DatabaseReader(std::make_unique<Connection>(path)); });
}

Database::Result<std::optional<Job>> DatabaseReader::find(JobId id) {
  return reading<std::optional<Job>>([&] { return find_job(connection_->find, id); });
}

Database::Result<JobList> DatabaseReader::list(const ListQuery& query) {
  return reading<JobList>([&] { return connection_->list(query); });
}

}  // namespace jobs
