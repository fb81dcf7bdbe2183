#include "otp/io/internal/asio_operation.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

#include "otp/io/internal/asio_context.h"

namespace otp::io::internal {

namespace asio = boost::asio;

namespace {
constexpr uint32_t kPromptSteps = 8;  // signals that follow each other without a pause
constexpr uint32_t kPauseDoublings = 6;
constexpr std::chrono::milliseconds kFirstPause{1};
}  // namespace

/// One signal, and the next one if it did not help. Runs where the operation's handlers run.
struct CancelStep {
  AsioOperation* operation;
  asio::any_io_executor executor;
  uint32_t done = 0;

  void operator()() {
    // acquire: pairs with the release in answer() (C1).
    if (operation->state_.load(acquire) & AsioOperation::kAnswered) return operation->complete();
    operation->signal_.emit(asio::cancellation_type::terminal);
    ++done;
    if (done < kPromptSteps) return asio::post(executor, CancelStep(*this));
    const uint32_t doublings =
        done - kPromptSteps < kPauseDoublings ? done - kPromptSteps : kPauseDoublings;
    auto timer = std::make_unique<asio::steady_timer>(executor, kFirstPause * (1 << doublings));
    asio::steady_timer& pause = *timer;
    pause.async_wait([step = *this, timer = std::move(timer)](
                         const boost::system::error_code&) mutable { step(); });
  }
};

void AsioOperation::answer() noexcept {
  // acq_rel: the process, or the canceller, sees the results (C1); they see each other's bit (C3).
  if (!(state_.fetch_or(kAnswered, acq_rel) & kCancelling)) complete();
}

void AsioOperation::request_cancel() noexcept {
  // acquire: pairs with the release in record().
  asio::any_io_executor executor;
  if (recorded_.load(acquire) == kWritten) {
    executor = executor_;
  } else if (AsioPoller* poller = asio_poller(system(), 0)) {
    executor = poller->context().get_executor();  // it never named one
  } else {
    return;
  }
  if (state_.fetch_or(kCancelling, acq_rel) & kAnswered) return;  // its wake letter is on its way
  asio::post(executor, CancelStep{this, executor});
}

}  // namespace otp::io::internal
