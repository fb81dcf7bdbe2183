#include "apps/jobs/store.h"

#include <chrono>
#include <deque>
#include <iterator>
#include <utility>

#include "apps/jobs/disk.h"
#include "apps/jobs/read_clock.h"
#include "apps/jobs/service_metrics.h"
#include "apps/jobs/settings.h"
#include "otp/application/application.h"
#include "otp/task/blocking.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr auto kPruneEvery = 1min;
constexpr auto kPruneMore = 50ms;
constexpr auto kLookPatience = 500ms;
// A store that was killed may still have its last transaction, and with it the lock, under way.
// Each attempt waits for the lock by itself.
constexpr int kAttemptsInUse = 2;

using Answer = std::function<void()>;

struct WriteRequest {
  std::vector<Operation> operations;
  std::function<void(Apply::Outcome)> answer;
};
/// What else needs the connection that writes. Runs on the blocking lane and returns what is to be
/// done in the store's process.
using DiskTask = std::function<Answer(Disk&)>;

struct ReadRequest {
  std::function<Answer(DiskReader&)> read;  // as a DiskTask
  std::function<void(const StoreError&)> refuse;
};

}  // namespace

struct Store::Round {
  std::unique_ptr<Disk> disk;
  std::vector<WriteRequest> writes;
  std::vector<DiskTask> tasks;
  std::vector<Answer> answers;
  std::optional<StoreError> failed;
};

struct Store::Reading {
  std::unique_ptr<DiskReader> reader;
  bool anew = false;  // the connection may be one to what the database was before
  std::vector<ReadRequest> requests;
  std::vector<Answer> answers;
};

struct Store::Reads {
  bool empty() const { return finds.empty() && lists.empty(); }

  std::vector<ReadRequest> finds;
  std::deque<ReadRequest> lists;
  std::unique_ptr<DiskReader> reader;  // null while a reading is on the blocking lane
  bool anew = false;                   // for the next one
};

Store::Done::Done(std::unique_ptr<Round> round) : round_(std::move(round)) {}
Store::Done::Done(std::unique_ptr<Reading> reading) : reading_(std::move(reading)) {}
Store::Done::Done(Done&&) noexcept = default;
Store::Done::~Done() = default;

namespace {

using Round = Store::Round;
using Reading = Store::Reading;

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

/// All of a round, on the blocking lane. One with nothing to do opens the database.
std::unique_ptr<Round> run_round(std::unique_ptr<Round> round) {
  if (round->writes.empty() && round->tasks.empty()) round->failed = round->disk->open();
  if (!round->writes.empty()) {
    std::vector<Operation> batch;
    for (const WriteRequest& write : round->writes) {
      batch.insert(batch.end(), write.operations.begin(), write.operations.end());
    }
    share_out(*round, round->disk->apply(std::move(batch)));
  }
  for (DiskTask& task : round->tasks) round->answers.push_back(task(*round->disk));
  return round;
}

std::unique_ptr<Reading> run_reading(std::unique_ptr<Reading> reading) {
  if (reading->anew) reading->reader->close();
  for (ReadRequest& request : reading->requests) {
    reading->answers.push_back(request.read(*reading->reader));
  }
  return reading;
}

template <class Work>
otp::Async<void> run_on_lane(otp::Pid store, std::unique_ptr<Work> (*run)(std::unique_ptr<Work>),
                             std::unique_ptr<Work> work) {
  std::unique_ptr<Work> done = co_await otp::blocking(run, std::move(work));
  (void)otp::send(store, Store::Done(std::move(done)));
}

template <class Reply, class Work>
ReadRequest read_request(otp::From<Reply> from, Work work) {
  return {.read = [from, work](DiskReader& reader) -> Answer {
            auto answer = std::make_shared<Reply>(work(reader));
            return [from, answer] { otp::reply(from, std::move(*answer)); };
          },
          .refuse = [from](const StoreError& error) { otp::reply(from, Reply(error)); }};
}

struct Opened {
  std::unique_ptr<Round> round;
  std::optional<StoreError> error;
};

Opened open_disk(std::unique_ptr<Round> round) {
  std::optional<StoreError> error = round->disk->open();
  return {std::move(round), std::move(error)};
}

/// Both connections. The reader is closed first: who closes last tidies up, and must be able to
/// write.
struct Connections {
  std::unique_ptr<Disk> disk;
  std::unique_ptr<DiskReader> reader;
};

/// On the blocking lane: what SQLite writes at its end may be long.
void close(Connections connections) { connections.reader.reset(); }

bool keeps_from_starting(const StoreError& error) {
  return !error.passes() && error.kind != StoreError::Kind::read_only;
}

}  // namespace

Store::Store() : next_(std::make_unique<Round>()), reads_(std::make_unique<Reads>()) {
  const auto settings = std::make_shared<const Settings>(otp::settings<Settings>());
  next_->disk = std::make_unique<Disk>(settings);
  reads_->reader = std::make_unique<DiskReader>(settings);
}

Store::~Store() = default;

otp::Async<otp::Init> Store::init() {
  otp::trap_exit(true);
  for (int attempt = 1;; ++attempt) {
    next_->disk->set_time(read_clock());
    Opened opened = co_await otp::blocking(open_disk, std::move(next_));
    next_ = std::move(opened.round);
    if (!opened.error || !keeps_from_starting(*opened.error)) break;
    if (opened.error->kind != StoreError::Kind::in_use || attempt == kAttemptsInUse) {
      co_return otp::error(otp::ExitReason::tagged("store", otp::Term(opened.error->text)));
    }
  }
  if (const Counts* counts = next_->disk->counts()) {
    open_ = writes_ = true;
    service_metrics().show_stored(*counts);
  }
  (void)otp::send_after(kPruneEvery, otp::self(), PruneDue{});
  co_return otp::ok();
}

void Store::write(std::vector<Operation> operations, std::function<void(Apply::Outcome)> answer) {
  next_->writes.push_back({std::move(operations), std::move(answer)});
  begin();
}

otp::Async<bool> Store::writes(otp::Server<Store> store) {
  const auto looked = co_await otp::try_call(store, Apply{}, {.timeout = kLookPatience});
  if (looked.ok()) co_return std::get_if<StoreError>(&looked.value()) == nullptr;
  const auto known = co_await otp::try_call(store, Writes{});
  co_return known.ok() && known.value();
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
  reads_->finds.push_back(
      read_request(from, [id = request.id](DiskReader& reader) { return reader.find(id); }));
  begin();
  return otp::noreply();
}

otp::CallResult<FindJobs::Reply> Store::handle_call(FindJobs request,
                                                    otp::From<FindJobs::Reply> from) {
  reads_->lists.push_back(read_request(
      from, [query = request.query](DiskReader& reader) { return reader.list(query); }));
  begin();
  return otp::noreply();
}

otp::CallResult<Recover::Reply> Store::handle_call(Recover, otp::From<Recover::Reply> from) {
  next_->tasks.emplace_back([from](Disk& disk) -> Answer {
    auto found = std::make_shared<Recover::Reply>(disk.recover());
    return [from, found] { otp::reply(from, std::move(*found)); };
  });
  begin();
  return otp::noreply();
}

void Store::handle_info(PruneDue) {
  next_->tasks.emplace_back([store = otp::self()](Disk& disk) -> Answer {
    otp::Duration pause = kPruneEvery;
    if (disk.prune()) pause = kPruneMore;
    return [store, pause] { (void)otp::send_after(pause, store, PruneDue{}); };
  });
  begin();
}

/// Puts on the blocking lane what can go there.
void Store::begin() {
  begin_round();
  begin_reading();
}

void Store::begin_round() {
  const bool wanted = !next_->writes.empty() || !next_->tasks.empty();
  const bool must_open = !open_ && !reads_->empty();
  if (writing_ || !(wanted || must_open)) return;
  std::unique_ptr<Round> round = std::exchange(next_, std::make_unique<Round>());
  writing_ = true;
  round->disk->set_time(read_clock());
  otp::spawn_link(run_on_lane<Round>, otp::self(), &run_round, std::move(round));
}

void Store::begin_reading() {
  if (!open_ || reads_->reader == nullptr || reads_->empty()) return;
  auto reading = std::make_unique<Reading>();
  reading->reader = std::move(reads_->reader);
  reading->anew = std::exchange(reads_->anew, false);
  reading->requests = std::exchange(reads_->finds, {});
  if (!reads_->lists.empty()) {
    reading->requests.push_back(std::move(reads_->lists.front()));
    reads_->lists.pop_front();
  }
  otp::spawn_link(run_on_lane<Reading>, otp::self(), &run_reading, std::move(reading));
}

void Store::finish_round(std::unique_ptr<Round> round) {
  JobMetrics& metrics = service_metrics();
  if (!round->writes.empty()) metrics.batches.add();
  for (const WriteRequest& write : round->writes) metrics.operations.add(write.operations.size());
  if (round->failed) metrics.store_errors.add();
  if (round->failed || !round->writes.empty()) writes_ = !round->failed;
  const Counts* counts = round->disk->counts();
  open_ = counts != nullptr;
  if (open_) {
    metrics.show_stored(*counts);
  } else {
    reads_->anew = true;
  }
  for (const Answer& answer : round->answers) answer();
  if (!open_ && round->failed) {
    for (const ReadRequest& find : std::exchange(reads_->finds, {})) find.refuse(*round->failed);
    for (const ReadRequest& list : std::exchange(reads_->lists, {})) list.refuse(*round->failed);
  }
  next_->disk = std::move(round->disk);
  writing_ = false;
}

void Store::finish_reading(std::unique_ptr<Reading> reading) {
  for (const Answer& answer : reading->answers) answer();
  reads_->reader = std::move(reading->reader);
}

void Store::finish(Done done) {
  if (done.round_) finish_round(std::move(done.round_));
  if (done.reading_) finish_reading(std::move(done.reading_));
}

void Store::handle_info(Done done) {
  finish(std::move(done));
  begin();
}

otp::CastResult Store::handle_info(otp::ExitMessage message) {
  if (!message.reason.is_abnormal()) return otp::noreply();
  lane_lost_ = true;  // the process of a round or a reading: its connection is gone with it
  return otp::stop(message.reason);
}

otp::Async<void> Store::terminate(otp::ExitReason) {
  while (!lane_lost_ && (writing_ || reads_->reader == nullptr)) {
    auto next = co_await otp::receive<Done, otp::ExitMessage>();
    if (auto* done = std::get_if<Done>(&next)) {
      finish(std::move(*done));
      begin_round();
    } else {
      lane_lost_ = std::get<otp::ExitMessage>(next).reason.is_abnormal();
    }
  }
  // One that is killed, or a lane that is full, leaves it to the destructors.
  Connections connections{std::move(next_->disk), std::move(reads_->reader)};
  (void)co_await otp::try_blocking(close, std::move(connections));
}

}  // namespace jobs
