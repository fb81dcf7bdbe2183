#include "otp/io/asio_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "otp/base/check.h"
#include "otp/io/internal/asio_context.h"

namespace otp::io {

namespace asio = boost::asio;

namespace internal {

namespace {

int make_eventfd() {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  OTP_CHECK(fd >= 0, "eventfd: errno %d", errno);
  return fd;
}

int64_t steady_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

AsioPoller::AsioPoller()
    : context_(BOOST_ASIO_CONCURRENCY_HINT_SAFE),
      keep_running_(context_.get_executor()),
      timer_(context_),
      wake_fd_(context_, make_eventfd()),
      wake_number_(wake_fd_.native_handle()) {
  read_wake();
}

AsioPoller::~AsioPoller() = default;

void AsioPoller::read_wake() {
  wake_fd_.async_read_some(asio::buffer(&wake_count_, sizeof wake_count_),
                           [this](const boost::system::error_code& error, size_t) {
                             if (error) return;  // the poller is being destroyed
                             woken_ = true;
                             read_wake();
                           });
}

void AsioPoller::wake() noexcept {
  uint64_t one = 1;
  // It fails only when the counter is full, and then the reader wakes anyway.
  [[maybe_unused]] ssize_t written = ::write(wake_number_, &one, sizeof one);
}

void AsioPoller::arm(int64_t at) {
  if (at >= armed_at_) return;  // it fires early: park() may return early
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(at)));
  armed_at_ = at;
  timer_.async_wait([this](const boost::system::error_code& error) {
    nothing_ = error == asio::error::operation_aborted;  // re-armed meanwhile: not an event
    if (!nothing_) armed_at_ = kNever;
  });
}

void AsioPoller::park(int64_t timeout_ns) {
  if (timeout_ns == 0) {
    poll();
  } else if (!woken_) {
    if (timeout_ns > 0) arm(steady_now() + timeout_ns);
    do {
      nothing_ = false;
      context_.run_one();
    } while (nothing_);
  }
  woken_ = false;
}

AsioPoller* asio_poller(otp::internal::SystemImpl& system, uint32_t index) {
  return dynamic_cast<AsioPoller*>(system.core(index).poller.get());
}

AsioPoller* this_asio_poller() {
  const otp::internal::Env* here = otp::internal::current_env;
  if (here == nullptr) return nullptr;
  return asio_poller(*here->system, here->core == nullptr ? 0 : here->core->index);
}

AsioPoller* least_loaded(otp::internal::SystemImpl& system) {
  AsioPoller* least = nullptr;
  for (uint32_t index = 0; index < system.core_count(); ++index) {
    AsioPoller* each = asio_poller(system, index);
    if (each == nullptr) return nullptr;
    if (least == nullptr || each->sockets().load(relaxed) < least->sockets().load(relaxed)) {
      least = each;
    }
  }
  return least;
}

}  // namespace internal

SystemOptions system_options(SystemOptions options) {
  options.poller = [](uint32_t) -> std::unique_ptr<Poller> {
    return std::make_unique<internal::AsioPoller>();
  };
  return options;
}

boost::asio::io_context& context_of(System& system, uint32_t index) {
  internal::AsioPoller* poller = internal::asio_poller(system.impl(), index);
  OTP_CHECK(poller != nullptr, "this System was not made with otp::io::system_options()");
  return poller->context();
}

boost::asio::io_context& this_context() {
  internal::AsioPoller* poller = internal::this_asio_poller();
  OTP_CHECK(poller != nullptr, "not in a process of a System made with otp::io::system_options()");
  return poller->context();
}

}  // namespace otp::io
