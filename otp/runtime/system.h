#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "otp/runtime/leftovers.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system_options.h"

namespace otp {

/// A node: processes, the cores and threads that run them, names, timers, the blocking lane.
///
///     otp::System system;
///     otp::Pid pid = system.spawn(worker, 42);
///     int answer = system.run([]() -> otp::Async<int> { co_return 42; });
///
/// A System logs nothing, not even crash reports, unless it is told where, as otp::run does:
///
///     auto out = otp::observe::start_fd_log_handler({.fd = STDERR_FILENO});
///     std::vector<std::unique_ptr<otp::observe::LogHandler>> handlers;
///     handlers.push_back(std::move(out).value());
///     otp::observe::Logger logger(otp::LogLevel::notice, std::move(handlers));
///     otp::System system({.log = &logger});                // otp/observe/logger.h
///
/// Several may live in one OS process; they share nothing but memory blocks. The destructor ends
/// every process (as `kill` does, so no callback runs) and waits until the last is gone; if
/// something holds it, it says what and goes on waiting (SystemOptions::terminate_report_after).
/// Then nothing may be left of them; what is, is a broken invariant (SystemOptions::on_leak).
///
/// Threads: methods may be called by any thread outside of processes; run() blocks that thread.
class System {
 public:
  explicit System(SystemOptions options = {}) : System(std::move(options), false) {}
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() { shut_down(); }

  /// otp::spawn from outside: the new process has no parent.
  template <class F, class... A>
  Pid spawn(F function, A... arguments) {
    internal::OutsideScope outside(*impl_);
    return otp::spawn(std::move(function), std::move(arguments)...);
  }
  template <class M>
  void send(Pid target, M message) {
    internal::OutsideScope outside(*impl_);
    (void)otp::send(target, std::move(message));
  }
  void exit(Pid pid, ExitReason reason) {
    internal::OutsideScope outside(*impl_);
    otp::exit(pid, std::move(reason));
  }
  bool is_alive(Pid pid) { return impl_->is_alive(pid.id); }
  std::optional<Pid> whereis(std::string_view name) {
    internal::OutsideScope outside(*impl_);
    return otp::whereis(name);
  }

  /// Runs `function(arguments...)`, which returns Async<T>, in a process of its own, and waits for
  /// it. Returns its value; throws what left it, or otp::Exit when the process was ended by a
  /// signal.
  template <class F, class... A>
  auto run(F function, A... arguments) {
    using T = typename std::invoke_result_t<F&, A...>::Value;
    // Shared: a Simulator that is at an end gives up while the process still waits.
    auto outcome = std::make_shared<Outcome<T>>();
    spawn(
        [](std::shared_ptr<Outcome<T>> out, F f, A... a) -> Async<void> {
          Report<T> report{out.get()};
          try {
            if constexpr (std::is_void_v<T>) {
              co_await f(std::move(a)...);
              report.done = true;
            } else {
              out->value.emplace(co_await f(std::move(a)...));
            }
          } catch (...) {
            out->exception = std::current_exception();
          }
        },
        outcome, std::move(function), std::move(arguments)...);
    wait_until(*outcome);
    // Moved: the process's frame, which shares the outcome, must not be the last to release it.
    if (outcome->exception) std::rethrow_exception(std::move(outcome->exception));
    if (!outcome->value) throw Exit(ExitReason::killed());
    if constexpr (!std::is_void_v<T>) return std::move(*outcome->value);
  }

  /// Processes that live now. Exact when nothing is being born or dying.
  uint64_t process_count() const { return impl_->process_count(); }
  uint32_t core_count() const { return impl_->core_count(); }

  internal::SystemImpl& impl() { return *impl_; }

 protected:
  System(SystemOptions options, bool simulated);
  /// Ends every process and stops the threads; after it nothing may be called.
  void shut_down();

  struct OutcomeBase {
    std::mutex mutex;
    std::condition_variable changed;
    bool finished = false;  // guarded by mutex
    std::exception_ptr exception;
  };
  /// Blocks until outcome.finished; a Simulator runs its processes here instead.
  virtual void wait_until(OutcomeBase& outcome);

 private:
  template <class T>
  struct Outcome : OutcomeBase {
    std::optional<std::conditional_t<std::is_void_v<T>, bool, T>> value;
  };
  // In the frame of the process that run() starts: tells the waiting thread, however the frame
  // ends.
  template <class T>
  struct Report {
    Outcome<T>* out;
    bool done = false;
    ~Report() {
      if constexpr (std::is_void_v<T>) {
        if (done) out->value = true;
      }
      std::lock_guard lock(out->mutex);
      out->finished = true;
      out->changed.notify_all();
    }
  };

  internal::MemoryWatch memory_;
  std::unique_ptr<internal::SystemImpl> impl_;
};

}  // namespace otp
