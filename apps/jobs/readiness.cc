#include "apps/jobs/readiness.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "otp/io/asio_poller.h"
#include "otp/io/use_process.h"
#include "otp/runtime/runtime.h"

namespace jobs {
namespace {

struct WaitAgain {};

otp::Async<void> wait_for(otp::Pid owner, otp::io::Descriptor epoll) {
  boost::asio::posix::stream_descriptor watched(otp::io::this_context(), epoll.release());
  for (;;) {
    co_await watched.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                otp::io::use_process);
    (void)otp::send(owner, DescriptorsReady{});
    co_await otp::receive<WaitAgain>();
  }
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Readiness::Readiness() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) fail("epoll_create1");
}

void Readiness::watch(const std::vector<pollfd>& entries) {
  for (const pollfd& entry : entries) {
    epoll_event event{};
    event.events = static_cast<uint32_t>(entry.events);  // POLLIN and EPOLLIN are the same bits
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.fd, &event) == 0) continue;
    fail("epoll_ctl");
  }
}

void Readiness::start() {
  otp::io::Descriptor copy(::fcntl(epoll_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) fail("dup");
  waiter_ = otp::spawn_link(wait_for, otp::self(), std::move(copy));
}

void Readiness::rearm() { (void)otp::send(waiter_, WaitAgain{}); }

void Readiness::stop() {
  if (waiter_ == otp::Pid{}) return;
  otp::unlink(waiter_);
  otp::exit(std::exchange(waiter_, {}), otp::ExitReason::shutdown());
}

void look_at(std::vector<pollfd>& entries) {
  while (::poll(entries.data(), entries.size(), 0) < 0 && errno == EINTR) {}
}

}  // namespace jobs
