#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "otp/async/async.h"
#include "otp/base/exit_reason.h"
#include "otp/base/pool.h"
#include "otp/base/term.h"
#include "otp/base/timeout.h"
#include "otp/task/task_process.h"

namespace otp {

/// What an item that takes too long does: end the consumer, or only itself.
enum class OnTimeout : uint8_t { exit, kill_task };

struct AsyncStreamOptions {
  /// Items under way at a time, at least 1. Default: the number of cores.
  std::optional<int64_t> max_concurrency{};
  /// For each item. It runs while the consumer waits for results, from the first wait after the
  /// item's start on.
  Timeout timeout = std::chrono::seconds(5);
  OnTimeout on_timeout = OnTimeout::exit;
  bool ordered = true;             ///< false: results come as they are ready
  bool zip_input_on_exit = false;  ///< an item's failure is {Item,Reason}
};

namespace internal {

/// The machine of async_stream; AsyncStream only knows the types.
///
/// Each item under way has a Slot. It is the sink of its task's monitor: results and DOWNs come to
/// arrived() as soon as they are drained, at whatever the consumer is doing.
///
/// Invariants
///  (A1) occupied_ counts the slots that are not free. It never exceeds concurrency_, so neither do
///       running bodies nor results that wait for an earlier one.
///  (A2) running_ holds the slots whose task runs, oldest first; since all have the same timeout,
///       the first one's deadline is the nearest. Those from unstamped_ on have no deadline yet.
///  (A3) order_ holds what next() will deliver: ordered, every slot from its start on; else a slot
///       once it is done.
///  (A4) A slot whose monitor is active is never freed: the monitor points to it.
/// Threads: the consumer's process.
class StreamBase : Condition {
 public:
  StreamBase(const StreamBase&) = delete;
  StreamBase& operator=(const StreamBase&) = delete;

  /// Kills what still runs and waits until it is gone; next() then gives nullopt.
  Async<void> close();

 protected:
  struct Slot;
  /// `waits`: next() awaits the source, or something else, before it starts an item.
  StreamBase(const AsyncStreamOptions& options, bool waits);
  ~StreamBase();

  /// Waits for something to deliver: its slot, or null.
  class Wait {
   public:
    explicit Wait(StreamBase& stream) : stream_(stream) {}
    bool await_ready() { return stream_.ready(); }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise>) {
      suspended_ = true;
      stream_.suspend();
    }
    Slot* await_resume() {
      if (suspended_) stream_.resumed();
      return stream_.deliverable();
    }

   private:
    StreamBase& stream_;
    bool suspended_ = false;
  };

  void require_owner() const {
    if (&self_process() != &owner_) [[unlikely]]
      refuse_stranger();
  }
  bool zips_input() const { return options_.zip_input_on_exit; }
  bool wants_more() const { return !exhausted_ && !ending_ && occupied_ < concurrency_; }
  bool is_ready() const;
  void exhausted() { exhausted_ = true; }
  /// `input`: for the reason of a failure, if zips_input(); else null.
  Pid launch(std::unique_ptr<TaskProcess> body, Term* input);
  /// Ends the stream: next() throws it once every task is gone.
  void fail(std::exception_ptr thrown);
  /// Takes the first slot of order_. Its result, to be consumed, and the slot is free; or null, and
  /// take_reason() must follow.
  Letter* take_result(Slot& slot);
  ExitReason take_reason(Slot& slot);
  /// Gives those that have none their deadline.
  void stamp();
  /// Asks the source while wants_more(). Runs as user code. What is thrown goes to fail().
  virtual void fill() noexcept = 0;

 private:
  enum class State : uint8_t { free, running, done, expired, dying, gone };

  bool ready();
  void suspend();
  void resumed();
  Slot* deliverable();
  [[noreturn]] void refuse_stranger() const;
  bool holds() override;
  bool over() const;
  Slot* take_slot();
  void free_slot(Slot& slot);
  void arrived(Slot& slot, Letter* letter) noexcept;
  void expire();
  void kill(Slot& slot);
  void end_all();
  void append_order(Slot& slot);
  void append_running(Slot& slot);
  void remove_running(Slot& slot);

  const AsyncStreamOptions options_;
  Process& owner_;
  const int64_t concurrency_;
  const bool waits_;
  bool exhausted_ = false;
  bool ending_ = false;
  bool launched_ = false;  // something was started since the last wait
  int64_t occupied_ = 0;
  Slot* free_ = nullptr;
  Slot* all_ = nullptr;
  Slot* order_first_ = nullptr;
  Slot* order_last_ = nullptr;
  Slot* running_first_ = nullptr;
  Slot* running_last_ = nullptr;
  Slot* unstamped_ = nullptr;
  std::exception_ptr thrown_;
};

/// One item under way.
struct StreamBase::Slot final : ResultSink {
  explicit Slot(StreamBase& owner) : stream(owner) {}
  void take(Letter* arrived) noexcept override { stream.arrived(*this, arrived); }
  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* slot, size_t bytes) noexcept { pool_free(slot, bytes); }

  StreamBase& stream;
  State state = State::free;
  Slot* next = nullptr;  // in free_ or order_
  Slot* next_of_all = nullptr;
  Slot* running_previous = nullptr;
  Slot* running_next = nullptr;
  uint64_t pid = 0;
  uint64_t reference = 0;
  int64_t deadline = 0;
  Letter* letter = nullptr;  // done: what came
  Term input;
};

inline bool StreamBase::is_ready() const {
  return order_first_ != nullptr && order_first_->state != State::running;
}

inline StreamBase::Slot* StreamBase::deliverable() {
  if (thrown_ != nullptr) [[unlikely]]
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  return is_ready() ? order_first_ : nullptr;
}

}  // namespace internal
}  // namespace otp
