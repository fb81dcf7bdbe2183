#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/clock.h"
#include "apps/jobs/database.h"
#include "apps/jobs/database_reader.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/store.h"

namespace jobs {

/// The database and its clock, opened when needed; all that writes. Every method may block.
class Disk {
 public:
  explicit Disk(std::shared_ptr<const Settings> settings);

  /// What time it is for all that follows: a thread of the blocking lane cannot ask.
  void set_time(ClockReading reading) { reading_ = std::move(reading); }

  /// Opens the database unless it is open.
  std::optional<StoreError> open();

  Apply::Outcome apply(std::vector<Operation> batch);
  Recover::Reply recover();
  /// Deletes what need not be kept, a part of it; true: there is more.
  bool prune();

  /// Numbers of stored jobs; null while it is closed.
  const Counts* counts() const { return database_ ? &database_->counts() : nullptr; }

 private:
  std::variant<Recover::Found, StoreError> recover_opened();

  std::shared_ptr<const Settings> settings_;
  std::optional<Database> database_;
  std::optional<Clock> clock_;  // survives a reopening
  ClockReading reading_;
};

/// Reads beside a Disk, which is to be open. Every method may block.
class DiskReader {
 public:
  explicit DiskReader(std::shared_ptr<const Settings> settings);

  FindJob::Reply find(JobId id);
  FindJobs::Reply list(const ListQuery& query);
  /// What comes next opens the database anew.
  void close() { reader_.reset(); }

 private:
  std::optional<StoreError> open();

  std::shared_ptr<const Settings> settings_;
  std::optional<DatabaseReader> reader_;
};

}  // namespace jobs
