#include "apps/jobs/job_rows.h"

#include "otp/base/enum_names.h"

namespace jobs {

State state_named(std::string_view name) {
  for (const auto& named : otp::enum_names<State>) {
    if (named.name == name) return named.value;
  }
  throw StoreError{.kind = StoreError::Kind::corrupt, .text = "unknown state " + std::string(name)};
}

std::optional<Moment> moment(std::optional<int64_t> ms) {
  if (!ms) return std::nullopt;
  return Moment(*ms);
}

Job job_of(const Statement& row) {
  Job job;
  job.id = row.integer(0);
  job.kind = row.bytes(1);
  job.state = state_named(row.bytes(2));
  job.attempts = static_cast<int>(row.integer(3));
  job.interruptions = static_cast<int>(row.integer(4));
  if (const auto status = row.integer_or_null(5)) job.exit_status = static_cast<int>(*status);
  job.enqueued_at = moment(row.integer(6));
  job.due_at = moment(row.integer(7));
  job.started_at = moment(row.integer_or_null(8));
  job.finished_at = moment(row.integer_or_null(9));
  job.wall_offset = moment(row.integer(10));
  job.output = row.bytes(11);
  job.output_truncated = row.integer(12) != 0;
  job.error = row.bytes(13);
  job.error_truncated = row.integer(14) != 0;
  return job;
}

std::string find_sql() { return std::string(kColumns) + " WHERE id = ?"; }

std::optional<Job> find_job(Statement& find, JobId id) {
  std::optional<Job> job;
  find.bind(id);
  while (find.step()) job = job_of(find);
  return job;
}

}  // namespace jobs
