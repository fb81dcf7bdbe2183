#include "apps/jobs/store.h"

#include <chrono>
#include <iterator>
#include <utility>

#include "apps/jobs/disk.h"
#include "apps/jobs/service_metrics.h"
#include "apps/jobs/settings.h"
#include "otp/application/application.h"
#include "otp/task/blocking.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr auto kPruneEvery = 1min;
constexpr auto kPruneMore = 50ms;
// A store that was killed may still have its last transaction, and with it the lock, under way.
// Each attempt waits for the lock by itself.
constexpr int kAttemptsInUse = 2;

using Answer = std::function<void()>;

struct WriteRequest {
  std::vector<Operation> operations;
  std::function<void(Apply::Outcome)> answer;
};
/// Runs on the blocking lane and returns what is to be done in the store's process.
using ReadRequest = std::function<Answer(Disk&)>;

}  // namespace

struct Store::Round {
  std::unique_ptr<Disk> disk;
  std::vector<WriteRequest> writes;
  std::vector<ReadRequest> reads;
  std::vector<Answer> answers;
  std::optional<StoreError> failed;
};

Store::RoundDone::RoundDone(std::unique_ptr<Round> round) : round_(std::move(round)) {}
Store::RoundDone::RoundDone(RoundDone&&) noexcept = default;
Store::RoundDone::~RoundDone() = default;

namespace {

using Round = Store::Round;

/// Gives each request of a batch its own part of the results.
void share_out(Round& round, Apply::Outcome outcome) {
  if (const auto* error = std::get_if<StoreError>(&outcome)) {
    round.failed = *error;
    for (WriteRequest& write : round.writes) {
      round.answers.emplace_back(
          [answer = std::move(write.answer), error = *error] { answer(error); });
    }
    return;
  }
  auto next = std::make_move_iterator(std::get<0>(outcome).begin());
  for (WriteRequest& write : round.writes) {
    const auto end = next + static_cast<std::ptrdiff_t>(write.operations.size());
    auto part = std::make_shared<std::vector<OperationResult>>(next, end);
    next = end;
    round.answers.emplace_back(
        [answer = std::move(write.answer), part] { answer(std::move(*part)); });
  }
}

/// All of a round, on the blocking lane: one transaction, then what only reads.
std::unique_ptr<Round> run_round(std::unique_ptr<Round> round) {
  if (!round->writes.empty()) {
    std::vector<Operation> batch;
    for (const WriteRequest& write : round->writes) {
      batch.insert(batch.end(), write.operations.begin(), write.operations.end());
    }
    share_out(*round, round->disk->apply(std::move(batch)));
  }
  for (ReadRequest& read : round->reads) round->answers.push_back(read(*round->disk));
  return round;
}

otp::Async<void> run_on_lane(otp::Pid store, std::unique_ptr<Round> round) {
  std::unique_ptr<Round> done = co_await otp::blocking(run_round, std::move(round));
  (void)otp::send(store, Store::RoundDone(std::move(done)));
}

struct Opened {
  std::unique_ptr<Round> round;
  std::optional<StoreError> error;
};

Opened open_disk(std::unique_ptr<Round> round) {
  std::optional<StoreError> error = round->disk->open();
  return {std::move(round), std::move(error)};
}

bool keeps_from_starting(const StoreError& error) {
  return !error.passes() && error.kind != StoreError::Kind::read_only;
}

}  // namespace

Store::Store() : next_(std::make_unique<Round>()) {
  next_->disk = std::make_unique<Disk>(std::make_shared<const Settings>(otp::settings<Settings>()));
}

Store::~Store() = default;

otp::Async<otp::Init> Store::init() {
  otp::trap_exit(true);
  for (int attempt = 1;; ++attempt) {
    Opened opened = co_await otp::blocking(open_disk, std::move(next_));
    next_ = std::move(opened.round);
    if (!opened.error || !keeps_from_starting(*opened.error)) break;
    if (opened.error->kind != StoreError::Kind::in_use || attempt == kAttemptsInUse) {
      co_return otp::error(otp::ExitReason::tagged("store", otp::Term(opened.error->text)));
    }
  }
  if (const Counts* counts = next_->disk->counts()) service_metrics().show_stored(*counts);
  (void)otp::send_after(kPruneEvery, otp::self(), PruneDue{});
  co_return otp::ok();
}

void Store::write(std::vector<Operation> operations, std::function<void(Apply::Outcome)> answer) {
  next_->writes.push_back({std::move(operations), std::move(answer)});
  begin_round();
}

template <class Reply, class Work>
void Store::read(otp::From<Reply> from, Work work) {
  next_->reads.emplace_back([from, work](Disk& disk) -> Answer {
    auto answer = std::make_shared<Reply>(work(disk));
    return [from, answer] { otp::reply(from, std::move(*answer)); };
  });
  begin_round();
}

otp::CallResult<Apply::Reply> Store::handle_call(Apply request, otp::From<Apply::Reply> from) {
  write(std::move(request.operations),
        [from](Apply::Outcome outcome) { otp::reply(from, std::move(outcome)); });
  return otp::noreply();
}

void Store::handle_cast(ApplyLater request) {
  write(std::move(request.operations),
        [to = request.to, tag = request.tag](Apply::Outcome outcome) {
          if (to != otp::Pid{}) (void)otp::send(to, Applied{tag, std::move(outcome)});
        });
}

otp::CallResult<FindJob::Reply> Store::handle_call(FindJob request,
                                                   otp::From<FindJob::Reply> from) {
  read(from, [id = request.id](Disk& disk) { return disk.find(id); });
  return otp::noreply();
}

otp::CallResult<FindJobs::Reply> Store::handle_call(FindJobs request,
                                                    otp::From<FindJobs::Reply> from) {
  read(from, [query = request.query](Disk& disk) { return disk.list(query); });
  return otp::noreply();
}

otp::CallResult<Recover::Reply> Store::handle_call(Recover, otp::From<Recover::Reply> from) {
  read(from, [](Disk& disk) { return disk.recover(); });
  return otp::noreply();
}

void Store::handle_info(PruneDue) {
  next_->reads.emplace_back([store = otp::self()](Disk& disk) -> Answer {
    otp::Duration pause = kPruneEvery;
    if (disk.prune()) pause = kPruneMore;
    return [store, pause] { (void)otp::send_after(pause, store, PruneDue{}); };
  });
  begin_round();
}

void Store::begin_round() {
  if (writing_ || (next_->writes.empty() && next_->reads.empty())) return;
  std::unique_ptr<Round> round = std::exchange(next_, std::make_unique<Round>());
  writing_ = true;
  otp::spawn_link(run_on_lane, otp::self(), std::move(round));
}

void Store::finish(Round& round) {
  JobMetrics& metrics = service_metrics();
  if (!round.writes.empty()) metrics.batches.add();
  for (const WriteRequest& write : round.writes) metrics.operations.add(write.operations.size());
  if (round.failed) metrics.store_errors.add();
  if (const Counts* counts = round.disk->counts()) metrics.show_stored(*counts);
  for (const Answer& answer : round.answers) answer();
  next_->disk = std::move(round.disk);
  writing_ = false;
}

void Store::handle_info(RoundDone done) {
  finish(*done);
  begin_round();
}

otp::CastResult Store::handle_info(otp::ExitMessage message) {
  if (!message.reason.is_abnormal()) return otp::noreply();
  return otp::stop(message.reason);  // the process of a round: its database is gone with it
}

otp::Async<void> Store::terminate(otp::ExitReason) {
  while (writing_) {
    RoundDone done = co_await otp::receive<RoundDone>();
    finish(*done);
    begin_round();
  }
}

}  // namespace jobs
