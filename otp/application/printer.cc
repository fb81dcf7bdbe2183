#include "otp/application/printer.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "otp/release/posix.h"

namespace otp::internal {

struct Printer::State {
  std::string text;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // guarded by mutex
};

void Printer::print(std::string text) {
  auto state = std::make_shared<State>();
  state->text = std::move(text);
  auto write = [state] {
    (void)release::print(state->text);
    std::lock_guard lock(state->mutex);
    state->done = true;
    state->changed.notify_all();
  };
  try {
    // Not joined: it may be stuck in a write that only a reader can end, and owns all it touches.
    std::thread(write).detach();
    state_ = std::move(state);
  } catch (const std::system_error&) {
    // No more threads: the tree can still be asked for with `tree`.
  }
}

void Printer::finish(std::chrono::milliseconds within) {
  if (!state_) return;
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, within, [this] { return state_->done; });
}

}  // namespace otp::internal
