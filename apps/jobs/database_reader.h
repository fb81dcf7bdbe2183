#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/jobs/database.h"

namespace jobs {

/// Reads jobs on a connection of its own. It waits for no transaction and none waits for it (WAL):
/// a long list costs those who write nothing. It sees what was on disk when it was asked.
///
/// Blocking, errors and ownership are as for the Database.
class DatabaseReader {
 public:
  template <class T>
  using Result = Database::Result<T>;

  /// REQUIRES: a Database is open at `path`: it is the one that creates, checks and locks.
  static Result<DatabaseReader> open(const std::string& path);
  DatabaseReader(DatabaseReader&&) noexcept;
  DatabaseReader& operator=(DatabaseReader&&) noexcept;
  ~DatabaseReader();

  Result<std::optional<Job>> find(JobId id);
  Result<JobList> list(const ListQuery& query);

 private:
  struct Connection;
  explicit DatabaseReader(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace jobs
