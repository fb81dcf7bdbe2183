#include "apps/jobs/disk.h"

#include <algorithm>
#include <utility>

#include "apps/jobs/limiter.h"
#include "otp/io/process_identity.h"

namespace jobs {
namespace {

/// Start times are needed for as long as the longest window of a rate.
std::chrono::milliseconds starts_kept(const Settings& settings) {
  std::chrono::milliseconds longest = std::chrono::hours(1);
  for (const auto& [name, kind] : *settings.kinds) {
    longest = std::max(longest, StartWindow::of(kind.rate).length);
  }
  return longest;
}

/// Passes an answer on, and closes a connection that has failed for good.
template <class Connection, class T>
std::variant<T, StoreError> checked(std::optional<Connection>& connection,
                                    std::variant<T, StoreError> result) {
  const auto* error = std::get_if<StoreError>(&result);
  if (error != nullptr && !error->passes()) connection.reset();
  return result;
}

void set_time(Operation& operation, Moment now) {
  if (auto* insert = std::get_if<InsertJob>(&operation)) insert->at = now;
  if (auto* cancel = std::get_if<CancelJob>(&operation)) cancel->at = now;
}

}  // namespace

Disk::Disk(std::shared_ptr<const Settings> settings) : settings_(std::move(settings)) {}

std::optional<StoreError> Disk::open() {
  if (database_) return std::nullopt;
  auto opened =
      Database::open({.path = settings_->database, .starts_kept = starts_kept(*settings_)});
  if (auto* error = std::get_if<StoreError>(&opened)) return *error;
  Database database = std::get<Database>(std::move(opened));
  if (!clock_) {
    auto record = database.clock();
    if (auto* error = std::get_if<StoreError>(&record)) return *error;
    clock_ = Clock::resume(std::get<0>(record), reading_);
  }
  database_.emplace(std::move(database));
  return std::nullopt;
}

Apply::Outcome Disk::apply(std::vector<Operation> batch) {
  if (auto error = open()) return *error;
  const ClockRecord record = clock_->record(reading_);
  for (Operation& operation : batch) jobs::set_time(operation, record.moment);
  return checked(database_, database_->apply(batch, record));
}

Recover::Reply Disk::recover() {
  if (auto error = open()) return *error;
  return checked(database_, recover_opened());
}

std::variant<Recover::Found, StoreError> Disk::recover_opened() {
  auto processes = database_->running_processes();
  if (auto* error = std::get_if<StoreError>(&processes)) return *error;
  for (const std::string& text : std::get<0>(processes)) {
    if (auto process = otp::io::ProcessIdentity::from_text(text)) kill_leftovers(*process);
  }
  const Kinds& kinds = *settings_->kinds;
  const Moment now = clock_->moment(reading_.elapsed);
  auto recovered = database_->recover(
      {.run_again =
           [&](const std::string& kind, int interruptions) {
             const auto found = kinds.find(kind);
             return found != kinds.end() && runs_again(found->second, interruptions);
           },
       .known = [&](const std::string& kind) { return kinds.contains(kind); },
       .at = now});
  if (auto* error = std::get_if<StoreError>(&recovered)) return *error;
  auto queued = database_->queued();
  if (auto* error = std::get_if<StoreError>(&queued)) return *error;
  auto starts = database_->starts_since(now - starts_kept(*settings_));
  if (auto* error = std::get_if<StoreError>(&starts)) return *error;
  return Recover::Found{.clock = {*clock_},
                        .queued = std::get<0>(std::move(queued)),
                        .starts = std::get<0>(std::move(starts)),
                        .recovered = std::get<0>(recovered)};
}

bool Disk::prune() {
  if (open()) return false;
  const Moment now = clock_->moment(reading_.elapsed);
  auto pruned = checked(database_, database_->prune(static_cast<int64_t>(settings_->keep.ended),
                                                    now - settings_->keep.age));
  const int* deleted = std::get_if<int>(&pruned);
  return deleted != nullptr && *deleted > 0;
}

DiskReader::DiskReader(std::shared_ptr<const Settings> settings) : settings_(std::move(settings)) {}

std::optional<StoreError> DiskReader::open() {
  if (reader_) return std::nullopt;
  auto opened = DatabaseReader::open(settings_->database);
  if (auto* error = std::get_if<StoreError>(&opened)) return *error;
  reader_.emplace(std::get<DatabaseReader>(std::move(opened)));
  return std::nullopt;
}

FindJob::Reply DiskReader::find(JobId id) {
  if (auto error = open()) return *error;
  return checked(reader_, reader_->find(id));
}

FindJobs::Reply DiskReader::list(const ListQuery& query) {
  if (auto error = open()) return *error;
  return checked(reader_, reader_->list(query));
}

}  // namespace jobs
