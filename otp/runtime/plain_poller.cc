#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "otp/base/check.h"
#include "otp/runtime/poller.h"

namespace otp {
namespace {

class PlainPoller final : public Poller {
 public:
  PlainPoller() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    OTP_CHECK(fd_ >= 0, "eventfd: errno %d", errno);
  }
  PlainPoller(const PlainPoller&) = delete;
  PlainPoller& operator=(const PlainPoller&) = delete;
  ~PlainPoller() override { ::close(fd_); }

  void park(int64_t timeout_ns) override {
    pollfd waited{fd_, POLLIN, 0};
    timespec limit{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    if (::ppoll(&waited, 1, timeout_ns < 0 ? nullptr : &limit, nullptr) > 0) drain();
  }

  void wake() noexcept override {
    uint64_t one = 1;
    // It fails only when the counter is full, and then the reader wakes anyway.
    [[maybe_unused]] ssize_t written = ::write(fd_, &one, sizeof one);
  }

  void poll() override {}

 private:
  void drain() {
    uint64_t count;
    [[maybe_unused]] ssize_t got = ::read(fd_, &count, sizeof count);
  }
  int fd_;
};

}  // namespace

std::unique_ptr<Poller> make_plain_poller() { return std::make_unique<PlainPoller>(); }

}  // namespace otp
