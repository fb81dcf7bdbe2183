#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace otp::release {

/// What the signals of an operator mean, as a plain state machine.
///
/// The first TERM or INT asks for the orderly stop. Whatever follows changes nothing, so that a
/// service manager and an impatient hand cannot spoil a stop; only the third INT (Ctrl-C pressed
/// three times) gives it up. HUP never stops a node.
class StopSignals {
 public:
  enum class Action { begin_stop, already_stopping, end_now, hangup, none };
  Action on_signal(int number);

  static constexpr int kInterruptsToEndNow = 3;

 private:
  bool stopping_ = false;
  int interrupts_ = 0;
};

/// Sets up the signals of the whole program; before any thread is started, as threads inherit it.
///
/// TERM, INT and HUP are blocked everywhere and read by a SignalWatcher; none is lost from here on.
/// PIPE and XFSZ are ignored: a write to a gone reader, or past the file size limit, fails as a
/// value. Everything else gets its default and is unblocked, whatever was inherited. Child programs
/// must be started with an empty mask and default actions (otp/io does).
void prepare_signals();

/// Reads the blocked signals on a thread of its own.
class SignalWatcher {
 public:
  struct Handlers {
    std::function<void(const char* signal)> stop;  ///< once, on the watcher's thread; must not wait
    std::function<void(const std::string&)> report;  ///< a line for the log
    std::function<void()> tick{};  ///< every kTickEvery on the watcher's thread, unless empty
  };
  static constexpr std::chrono::milliseconds kTickEvery{1'000};

  SignalWatcher();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;

  /// Returns an error line (no descriptor, no more threads) or nothing.
  std::string start(Handlers handlers);
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The exit status after the third INT.
inline constexpr int kEndedNowStatus = 130;

}  // namespace otp::release
