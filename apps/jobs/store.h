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
#include "apps/jobs/names.h"
#include "apps/jobs/store_error.h"
#include "otp/behaviour/gen_server.h"

namespace jobs {

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
/// It starts without a database that is busy, full or read-only, and opens it as soon as that is
/// possible; it does not start on one that is damaged, newer, or another node's.
class Store {
 public:
  struct Round;
  /// A round on its way: it has one owner at a time, the store or the thread that does it.
  class RoundDone {
   public:
    explicit RoundDone(std::unique_ptr<Round> round);
    RoundDone(RoundDone&&) noexcept;
    ~RoundDone();
    Round& operator*() const { return *round_; }

   private:
    std::unique_ptr<Round> round_;
  };
  struct PruneDue {};
  using Info = otp::Protocol<RoundDone, PruneDue>;

  // Client API: each waits for the answer.
  static auto apply(std::vector<Operation> operations) {
    return otp::try_call(kStore, Apply{std::move(operations)}, kForever);
  }
  static auto find(JobId id) { return otp::try_call(kStore, FindJob{id}, kForever); }
  static auto list(ListQuery query) { return otp::try_call(kStore, FindJobs{query}, kForever); }
  static auto recover() { return otp::try_call(kStore, Recover{}, kForever); }
  /// Does not wait: `to` gets Applied.
  static void apply_later(otp::Pid to, uint64_t tag, std::vector<Operation> operations) {
    (void)otp::cast(kStore, ApplyLater{to, tag, std::move(operations)});
  }

  // Callbacks.
  Store();
  ~Store();
  otp::Async<otp::Init> init();
  otp::CallResult<Apply::Reply> handle_call(Apply request, otp::From<Apply::Reply> from);
  otp::CallResult<FindJob::Reply> handle_call(FindJob request, otp::From<FindJob::Reply> from);
  otp::CallResult<FindJobs::Reply> handle_call(FindJobs request, otp::From<FindJobs::Reply> from);
  otp::CallResult<Recover::Reply> handle_call(Recover request, otp::From<Recover::Reply> from);
  void handle_cast(ApplyLater request);
  void handle_info(RoundDone done);
  void handle_info(PruneDue);
  otp::CastResult handle_info(otp::ExitMessage message);
  otp::Async<void> terminate(otp::ExitReason reason);

 private:
  void write(std::vector<Operation> operations, std::function<void(Apply::Outcome)> answer);
  template <class Reply, class Work>
  void read(otp::From<Reply> from, Work work);
  void begin_round();
  void finish(Round& round);

  std::unique_ptr<Round> next_;  // collects what is asked for
  bool writing_ = false;         // a round is on the blocking lane
};

}  // namespace jobs

template <>
struct otp::Shareable<jobs::Store::Round> : std::true_type {};
template <>
struct otp::Shareable<jobs::Store::RoundDone> : std::true_type {};
