#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/clock.h"
#include "apps/jobs/database.h"
#include "apps/jobs/job.h"
#include "apps/jobs/store_error.h"
#include "otp/behaviour/gen_server.h"

namespace jobs {

/// For calls that end with the answer or with the server that was asked.
inline constexpr otp::CallOptions kForever{.timeout = otp::infinity};

// ---- What can be asked of the store. Every answer may be a StoreError instead; then nothing of it
// was done.

/// Does the operations, in order, all of them or none; the answer comes when they are on disk.
/// Without operations: whether anything can be written. InsertJob and CancelJob get their time
/// here.
struct Apply {
  using Outcome = std::variant<std::vector<OperationResult>, StoreError>;
  using Reply = Outcome;
  std::vector<Operation> operations = {};
};
/// The same as a cast; `to` gets Applied with the tag, nobody if it is the default Pid.
struct ApplyLater {
  otp::Pid to = {};
  uint64_t tag = 0;
  std::vector<Operation> operations = {};
};
struct Applied {
  uint64_t tag = 0;
  Apply::Outcome outcome;
};

/// Whether the last that was to be written could be: as far as the store knows, without a look.
struct Writes {
  using Reply = bool;
};

struct FindJob {
  using Reply = std::variant<std::optional<Job>, StoreError>;
  JobId id = 0;
};
struct FindJobs {
  using Reply = std::variant<JobList, StoreError>;
  ListQuery query;
};

/// Takes over what an earlier life left: kills what is left of its commands and puts their jobs
/// back. REQUIRES: no command of this life runs.
struct Recover {
  struct Found {
    otp::unchecked<Clock> clock;  ///< the store's own: a plain value
    std::vector<QueuedJob> queued;
    std::vector<RecordedStart> starts;
    Recovered recovered;
  };
  using Reply = std::variant<Found, StoreError>;
};

/// Owns the database. What is asked while one transaction is being written is written by the next
/// one, all of it with one fsync.
///
/// Reads do not wait for that, nor it for them: they have a connection and a thread of their own,
/// on which all jobs that were asked for come first and then one list. So a crowd that asks for
/// lists waits for itself only, and neither a submission nor the health of the service for it.
///
/// It starts without a database that is busy, full or read-only, and opens it as soon as that is
/// possible; it does not start on one that is damaged, newer, or another node's.
class Store {
 public:
  struct Round;    // of the connection that writes: a transaction and what else needs it
  struct Reading;  // of the connection that reads
  /// One of them on its way: it has one owner at a time, the store or the thread that does it.
  class Done {
   public:
    explicit Done(std::unique_ptr<Round> round);
    explicit Done(std::unique_ptr<Reading> reading);
    Done(Done&&) noexcept;
    ~Done();

   private:
    friend Store;
    std::unique_ptr<Round> round_;
    std::unique_ptr<Reading> reading_;
  };
  struct PruneDue {};
  using Info = otp::Protocol<Done, PruneDue>;

  // Client API: each waits for the answer.
  static auto apply(const otp::Server<Store>& store, std::vector<Operation> operations) {
    return otp::try_call(store, Apply{std::move(operations)}, kForever);
  }
  /// Whether anything can be written. Asks the disk, but does not wait for it for long: while
  /// somebody else holds the lock, or the disk is slow, what was known before counts.
  static otp::Async<bool> writes(otp::Server<Store> store);
  static auto find(const otp::Server<Store>& store, JobId id) {
    return otp::try_call(store, FindJob{id}, kForever);
  }
  static auto list(const otp::Server<Store>& store, ListQuery query) {
    return otp::try_call(store, FindJobs{query}, kForever);
  }
  static auto recover(const otp::Server<Store>& store) {
    return otp::try_call(store, Recover{}, kForever);
  }
  /// Does not wait: `to` gets Applied.
  static void apply_later(const otp::Server<Store>& store, otp::Pid to, uint64_t tag,
                          std::vector<Operation> operations) {
    (void)otp::cast(store, ApplyLater{to, tag, std::move(operations)});
  }

  // Callbacks.
  Store();
  ~Store();
  otp::Async<otp::Init> init();
  otp::CallResult<Apply::Reply> handle_call(Apply request, otp::From<Apply::Reply> from);
  bool handle_call(Writes) { return writes_; }
  otp::CallResult<FindJob::Reply> handle_call(FindJob request, otp::From<FindJob::Reply> from);
  otp::CallResult<FindJobs::Reply> handle_call(FindJobs request, otp::From<FindJobs::Reply> from);
  otp::CallResult<Recover::Reply> handle_call(Recover request, otp::From<Recover::Reply> from);
  void handle_cast(ApplyLater request);
  void handle_info(Done done);
  void handle_info(PruneDue);
  otp::CastResult handle_info(otp::ExitMessage message);
  otp::Async<void> terminate(otp::ExitReason reason);

 private:
  struct Reads;

  void write(std::vector<Operation> operations, std::function<void(Apply::Outcome)> answer);
  void begin();
  void begin_round();
  void begin_reading();
  void finish(Done done);
  void finish_round(std::unique_ptr<Round> round);
  void finish_reading(std::unique_ptr<Reading> reading);

  std::unique_ptr<Round> next_;  // collects what is asked for
  bool writing_ = false;         // a round is on the blocking lane
  bool open_ = false;            // the database, after the last round
  bool writes_ = false;          // as Writes answers
  bool lane_lost_ = false;       // a connection on the blocking lane will not come back

  std::unique_ptr<Reads> reads_;  // what waits for a reading
};

}  // namespace jobs

template <>
struct otp::Shareable<jobs::Store::Round> : std::true_type {};
template <>
struct otp::Shareable<jobs::Store::Reading> : std::true_type {};
template <>
struct otp::Shareable<jobs::Store::Done> : std::true_type {};
