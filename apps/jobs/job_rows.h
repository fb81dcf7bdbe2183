#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/jobs/database.h"
#include "apps/jobs/sqlite.h"

/// Rows of the database as jobs: what its two connections read alike.
namespace jobs {

/// Before a condition on `jobs`; its rows are for job_of().
inline constexpr const char* kColumns =
    "SELECT id, kind, state, attempts, interruptions, exit_status, enqueued_at, due_at, started_at,"
    " finished_at, wall_offset, output, output_truncated, error, error_truncated"
    " FROM jobs LEFT JOIN results USING(id)";

/// Throws StoreError when there is no such state.
State state_named(std::string_view name);

inline Moment moment(int64_t ms) { return Moment(ms); }
std::optional<Moment> moment(std::optional<int64_t> ms);

/// Takes: row: of kColumns. Throws StoreError when that is no job.
Job job_of(const Statement& row);

/// One job by its id.
std::string find_sql();
/// Takes: find: prepared from find_sql(). Throws StoreError.
std::optional<Job> find_job(Statement& find, JobId id);

/// Runs `work`, which only reads.
template <class T, class Work>
Database::Result<T> reading(Work work) {
  try {
    return work();
  } catch (const StoreError& error) {
    return error;
  }
}

}  // namespace jobs
