#include "otp/release/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <system_error>
#include <thread>

#include "otp/release/posix.h"

namespace otp::release {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

const char* signal_name(int number) {
  return number == SIGTERM ? "TERM" : number == SIGINT ? "INT" : "HUP";
}

}  // namespace

StopSignals::Action StopSignals::on_signal(int number) {
  if (number == SIGHUP) return Action::hangup;
  if (number != SIGTERM && number != SIGINT) return Action::none;
  if (number == SIGINT && ++interrupts_ >= kInterruptsToEndNow) return Action::end_now;
  if (stopping_) return Action::already_stopping;
  stopping_ = true;
  return Action::begin_stop;
}

void prepare_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGQUIT}) {
    ::sigaction(number, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  for (int number : {SIGPIPE, SIGXFSZ}) ::sigaction(number, &action, nullptr);
  sigset_t set = watched_signals();
  ::pthread_sigmask(SIG_SETMASK, &set, nullptr);
}

struct SignalWatcher::State {
  Handlers handlers;
  UniqueFd signals;
  UniqueFd wake;
  std::thread thread;
  StopSignals stop_signals;                 // the watcher's thread only
  Clock::time_point ticked = Clock::now();  // the watcher's thread only

  void run() {
    while (true) {
      pollfd polls[] = {{.fd = signals.get(), .events = POLLIN, .revents = 0},
                        {.fd = wake.get(), .events = POLLIN, .revents = 0}};
      const int wait = handlers.tick ? static_cast<int>(kTickEvery.count()) : -1;
      const int events = ::poll(polls, 2, wait);
      if (handlers.tick && Clock::now() - ticked >= kTickEvery) {
        ticked = Clock::now();
        handlers.tick();
      }
      if (events <= 0) continue;
      if (polls[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signals.get(), &info, sizeof info) != sizeof info) continue;
      act(static_cast<int>(info.ssi_signo), static_cast<long>(info.ssi_pid));
    }
  }

  void act(int number, long sender) {
    std::string from = sender > 0 ? " from pid " + std::to_string(sender) : "";
    switch (stop_signals.on_signal(number)) {
      case StopSignals::Action::begin_stop:
        // Said first: what stops is logged from then on.
        handlers.report(std::string("stopping on signal ") + signal_name(number) + from);
        return handlers.stop(signal_name(number));
      case StopSignals::Action::already_stopping:
        return handlers.report(std::string("signal ") + signal_name(number) + from +
                               ": the stop is under way; the third INT would end it at once");
      case StopSignals::Action::end_now:
        handlers.report("third INT: ending at once, without the orderly stop");
        ::_exit(kEndedNowStatus);
      case StopSignals::Action::hangup: return handlers.report("ignoring signal HUP" + from);
      case StopSignals::Action::none: return;
    }
  }
};

SignalWatcher::SignalWatcher() = default;
SignalWatcher::~SignalWatcher() { stop(); }

std::string SignalWatcher::start(Handlers handlers) {
  state_ = std::make_unique<State>();
  sigset_t set = watched_signals();
  state_->handlers = std::move(handlers);
  state_->signals.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  state_->wake.reset(::eventfd(0, EFD_CLOEXEC));
  if (!state_->signals.valid() || !state_->wake.valid()) {
    return system_error("create", "the descriptors for signals", errno);
  }
  try {
    state_->thread = std::thread([state = state_.get()] { state->run(); });
  } catch (const std::system_error& fault) {
    return std::string("cannot start the thread for signals: ") + fault.what();
  }
  return "";
}

void SignalWatcher::stop() {
  if (!state_ || !state_->thread.joinable()) return;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(state_->wake.get(), &one, sizeof one);
  state_->thread.join();
}

}  // namespace otp::release
