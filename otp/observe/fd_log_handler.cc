#include "otp/observe/fd_log_handler.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>

#include "otp/observe/internal/log_output.h"
#include "otp/observe/internal/log_queue.h"

namespace otp::observe {
namespace {

using internal::LogOutput;
using internal::LogQueue;
using std::chrono::steady_clock;

constexpr size_t kBatchBytes = size_t{64} << 10;
constexpr auto kReportEvery = std::chrono::seconds(5);      // while drops go on
constexpr auto kStopGrace = std::chrono::milliseconds(20);  // for the thread to see the deadline

std::string dropped_text(const LogStats& dropped, const FdLogOptions& options, int error) {
  std::string text = std::to_string(dropped.dropped()) + " records were not written:";
  const char* separator = " ";
  const auto add = [&](uint64_t count, const std::string& why) {
    if (count == 0) return;
    text += separator + std::to_string(count) + why;
    separator = ", ";
  };
  add(dropped.dropped_full, " as the reader did not keep up");
  add(dropped.dropped_burst, " above the limit of " + std::to_string(options.burst_records_max) +
                                 " in " + std::to_string(options.burst_window.count()) + " ms");
  const char* name = error == 0 ? nullptr : strerrorname_np(error);  // no locale in it
  add(dropped.dropped_failed,
      name == nullptr ? " as writing failed" : " as writing failed with " + std::string(name));
  return text;
}

// What callers and the writing thread share. The thread holds it too, since a write may be stuck
// for ever when the handler is long gone.
class Writer {
 public:
  Writer(const FdLogOptions& options, LogOutput output)
      : options_(options),
        queue_(options.queue_bytes_max, options.burst_records_max, options.burst_window),
        output_(std::move(output)) {}

  void run();
  void push(const std::shared_ptr<const LogRecord>& record) noexcept {
    if (queue_.push(record)) output_.wake();
  }
  bool flush(Deadline deadline) noexcept {
    const uint64_t target = queue_.accepted();
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [&] { return finished_ >= target || exited_; });
  }
  void request_stop(Deadline deadline) noexcept {
    queue_.close();
    output_.request_stop(deadline);
  }
  // What became of the thread by then.
  enum class End { running, exited_early, exited };
  End wait_exited(Deadline deadline) noexcept {
    std::unique_lock lock(mutex_);
    const bool exited = changed_.wait_until(lock, deadline, [&] { return exited_; });
    return !exited ? End::running : cut_short_ ? End::exited_early : End::exited;
  }
  LogStats stats() const noexcept {
    LogStats stats = queue_.dropped();
    stats.written = written_.load(std::memory_order_relaxed);
    stats.dropped_failed += failed_.load(std::memory_order_relaxed);
    return stats;
  }

 private:
  void write_all(LogQueue::Batch batch);
  void write_buffer();
  void finish(uint64_t records);
  void report_drops(bool queue_is_empty);
  steady_clock::time_point next_wake() const;

  const FdLogOptions options_;
  LogQueue queue_;
  LogOutput output_;

  // Writing thread only.
  std::string buffer_;
  std::vector<size_t> ends_;  // of the records in buffer_
  LogStats reported_;
  steady_clock::time_point unreported_since_ = steady_clock::time_point::max();
  steady_clock::time_point failed_at_ = {};
  int last_error_ = 0;
  bool in_line_ = false;  // the last thing written was a part of a line

  // relaxed: counters for reports
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> failed_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t finished_ = 0;   // guarded by mutex_
  bool exited_ = false;     // guarded by mutex_
  bool cut_short_ = false;  // guarded by mutex_: a stop's deadline came before the end
};

void Writer::run() {
  while (true) {
    const bool last_round = output_.stopping();
    LogQueue::Batch batch = queue_.take_all();
    if (!batch.empty()) {
      write_all(std::move(batch));
      report_drops(false);
      continue;
    }
    report_drops(true);
    if (last_round) break;
    if (queue_.begin_sleep()) output_.sleep_until(next_wake());
    queue_.end_sleep();
  }
  output_.close();
  std::lock_guard lock(mutex_);
  cut_short_ = last_error_ == ETIMEDOUT;
  exited_ = true;
  changed_.notify_all();
}

// Drops that are not reported yet are looked at when the burst window has passed; a broken output
// is only tried again with a new record.
steady_clock::time_point Writer::next_wake() const {
  const bool unreported = stats().dropped() > reported_.dropped();
  if (!unreported || last_error_ != 0) return steady_clock::time_point::max();
  return steady_clock::now() + options_.burst_window;
}

void Writer::write_all(LogQueue::Batch batch) {
  while (std::shared_ptr<const LogRecord> record = batch.pop()) {
    append_record(&buffer_, *record, options_.format);
    ends_.push_back(buffer_.size());
    if (buffer_.size() >= kBatchBytes) write_buffer();
  }
  write_buffer();
}

// Writes what is in buffer_, or counts its records as failed.
void Writer::write_buffer() {
  if (buffer_.empty()) return;
  size_t written = 0;
  const auto now = steady_clock::now();
  if (last_error_ == 0 || now - failed_at_ >= options_.retry_after) {
    last_error_ = in_line_ ? output_.write("\n").error : 0;
    if (last_error_ == 0) {
      const LogOutput::Written result = output_.write(buffer_);
      written = result.bytes;
      last_error_ = result.error;
      if (written > 0) in_line_ = buffer_[written - 1] != '\n';
    }
    if (last_error_ != 0) failed_at_ = now;
  }
  uint64_t good = 0;
  while (good < ends_.size() && ends_[good] <= written) ++good;
  written_.fetch_add(good, std::memory_order_relaxed);
  failed_.fetch_add(ends_.size() - good, std::memory_order_relaxed);
  const uint64_t records = ends_.size();
  ends_.clear();
  buffer_.clear();
  if (buffer_.capacity() > 4 * kBatchBytes) buffer_.shrink_to_fit();
  finish(records);
}

void Writer::finish(uint64_t records) {
  std::lock_guard lock(mutex_);
  finished_ += records;
  changed_.notify_all();
}

// One line for all that was dropped since the last: when the queue is empty and the burst over, or
// every few seconds while it goes on.
void Writer::report_drops(bool queue_is_empty) {
  const LogStats now_dropped = stats();
  if (now_dropped.dropped() == reported_.dropped()) return;
  const auto now = steady_clock::now();
  unreported_since_ = std::min(unreported_since_, now);
  const bool settled = queue_is_empty && (!queue_.in_burst(now) || output_.stopping());
  if (!settled && now - unreported_since_ < kReportEvery) return;
  if (last_error_ != 0 && now - failed_at_ < options_.retry_after && !output_.stopping()) return;

  LogStats dropped;
  dropped.dropped_full = now_dropped.dropped_full - reported_.dropped_full;
  dropped.dropped_burst = now_dropped.dropped_burst - reported_.dropped_burst;
  dropped.dropped_failed = now_dropped.dropped_failed - reported_.dropped_failed;
  LogRecord record;
  record.level = LogLevel::warning;
  record.domain = "otp.logger";
  record.time = std::chrono::system_clock::now();
  record.message = dropped_text(dropped, options_, last_error_);
  record.add("dropped", static_cast<int64_t>(dropped.dropped()));
  std::string line = in_line_ ? "\n" : "";
  append_record(&line, record, options_.format);
  const LogOutput::Written result = output_.write(line);
  if (result.bytes > 0) in_line_ = line[result.bytes - 1] != '\n';
  last_error_ = result.error;
  if (result.error == 0) {
    reported_ = now_dropped;
    unreported_since_ = steady_clock::time_point::max();
  } else {
    failed_at_ = now;
  }
}

class FdLogHandler final : public LogHandler {
 public:
  FdLogHandler(LogLevel level, std::shared_ptr<Writer> writer)
      : LogHandler(level), writer_(std::move(writer)) {}

  ~FdLogHandler() override { stop(steady_clock::now() + std::chrono::seconds(1)); }

  // Throws std::system_error when there are no more threads.
  void start() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // no signal is for the writer, SIGPIPE included
    struct Restore {
      sigset_t* mask;
      ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
    } restore{&before};
    thread_ = std::thread([writer = writer_] {
      pthread_setname_np(pthread_self(), "otp.log");
      writer->run();
    });
  }

  void handle(const std::shared_ptr<const LogRecord>& record) noexcept override {
    writer_->push(record);
  }
  bool flush(Deadline deadline) noexcept override { return writer_->flush(deadline); }
  bool stop(Deadline deadline) noexcept override {
    std::lock_guard lock(stop_mutex_);
    if (!thread_.joinable()) return stopped_in_time_;
    writer_->request_stop(deadline);
    const Writer::End end = writer_->wait_exited(deadline + kStopGrace);
    stopped_in_time_ = end == Writer::End::exited;
    if (end == Writer::End::running) {
      thread_.detach();  // stuck in a write(2) that only a reader can end
    } else {
      thread_.join();
    }
    return stopped_in_time_;
  }
  LogStats stats() const noexcept override { return writer_->stats(); }

 private:
  const std::shared_ptr<Writer> writer_;
  std::mutex stop_mutex_;
  std::thread thread_;            // guarded by stop_mutex_
  bool stopped_in_time_ = false;  // guarded by stop_mutex_
};

ExitReason failure(const std::string& text) {
  return ExitReason::tagged("log_handler", Term(text));
}

}  // namespace

Result<std::unique_ptr<LogHandler>> start_fd_log_handler(const FdLogOptions& options) {
  Result<LogOutput> output = LogOutput::open(options.fd);
  if (!output.ok()) return output.error();
  auto writer = std::make_shared<Writer>(options, std::move(output).value());
  auto handler = std::make_unique<FdLogHandler>(options.level, std::move(writer));
  try {
    handler->start();
  } catch (const std::system_error& error) {
    return failure(std::string("cannot start the writing thread: ") + error.what());
  }
  return Result<std::unique_ptr<LogHandler>>(std::move(handler));
}

}  // namespace otp::observe
