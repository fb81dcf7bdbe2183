#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/jobs/clock.h"
#include "apps/jobs/database.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/store.h"

namespace jobs {

/// The database and its clock, opened when needed. Every method may block.
class Disk {
 public:
  explicit Disk(std::shared_ptr<const Settings> settings);

  /// Opens the database unless it is open.
  std::optional<StoreError> open();

  Apply::Outcome apply(std::vector<Operation> batch);
  FindJob::Reply find(JobId id);
  FindJobs::Reply list(const ListQuery& query);
  Recover::Reply recover();
  /// Deletes what need not be kept, a part of it; true: there is more.
  bool prune();

  /// Numbers of stored jobs; null while it is closed.
  const Counts* counts() const { return database_ ? &database_->counts() : nullptr; }

 private:
  /// Passes an answer on, and closes a connection that has failed for good.
  template <class T>
  std::variant<T, StoreError> checked(std::variant<T, StoreError> result);
  std::variant<Recover::Found, StoreError> recover_opened();

  std::shared_ptr<const Settings> settings_;
  std::optional<Database> database_;
  std::optional<Clock> clock_;  // survives a reopening
};

}  // namespace jobs
