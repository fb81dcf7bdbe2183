#include "otp/io/child_pipes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace otp::io {
namespace {

// One step moves this much at most, so that one chatty command does not hold up its driver.
constexpr size_t kStepBytes = 256 << 10;
// A pipe holds 64 KiB unless somebody enlarged it (1 MiB at most for non-root).
constexpr size_t kFinishBytes = 4 << 20;

}  // namespace

ChildPipes::ChildPipes(ChildStreams streams, Options options)
    : streams_(std::move(streams)), options_(std::move(options)) {
  if (options_.input.empty()) streams_.input.reset();
}

std::vector<pollfd> ChildPipes::poll_set() const {
  std::vector<pollfd> set;
  if (input_open()) set.push_back({.fd = input_fd(), .events = POLLOUT, .revents = 0});
  if (output_open()) set.push_back({.fd = output_fd(), .events = POLLIN, .revents = 0});
  if (error_open()) set.push_back({.fd = error_fd(), .events = POLLIN, .revents = 0});
  return set;
}

void ChildPipes::on_ready(const std::vector<pollfd>& ready) {
  for (const pollfd& entry : ready) {
    if (entry.revents == 0) continue;
    if (input_open() && entry.fd == input_fd()) {
      write_input();
    } else if (output_open() && entry.fd == output_fd()) {
      read_output();
    } else if (error_open() && entry.fd == error_fd()) {
      read_error();
    }
  }
}

void ChildPipes::write_input() {
  size_t budget = kStepBytes;
  while (input_open() && budget > 0) {
    const size_t size = std::min(options_.input.size() - written_, budget);
    const ssize_t sent = ::write(input_fd(), options_.input.data() + written_, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent > 0) {
      written_ += static_cast<size_t>(sent);
      budget -= static_cast<size_t>(sent);
    }
    // EPIPE: the command does not want the rest.
    if (sent < 0 || written_ == options_.input.size()) {
      streams_.input.reset();
      options_.input = {};
    }
  }
}

void ChildPipes::read_output() {
  read_some(streams_.output, output_, options_.output_bytes_max, kStepBytes);
}

void ChildPipes::read_error() {
  read_some(streams_.error, error_, options_.error_bytes_max, kStepBytes);
}

ChildPipes::Outcome ChildPipes::read_once(int fd, Captured& into, size_t bytes_max) {
  char buffer[32 << 10];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) < 0 && errno == EINTR) {}
  if (got < 0) return errno == EAGAIN ? Outcome::waits : Outcome::closed;
  if (got == 0) return Outcome::closed;
  const auto size = static_cast<size_t>(got);
  const size_t room = bytes_max - std::min(bytes_max, into.bytes.size());
  into.bytes.append(buffer, std::min(room, size));
  into.total += size;
  return Outcome::again;
}

void ChildPipes::read_some(Descriptor& from, Captured& into, size_t bytes_max, size_t budget) {
  const uint64_t before = into.total;
  while (from && into.total - before < budget) {
    const Outcome outcome = read_once(from.get(), into, bytes_max);
    if (outcome == Outcome::waits) return;
    if (outcome == Outcome::closed) from.reset();
  }
}

void ChildPipes::finish() {
  streams_.input.reset();
  options_.input = {};
  read_some(streams_.output, output_, options_.output_bytes_max, kFinishBytes);
  read_some(streams_.error, error_, options_.error_bytes_max, kFinishBytes);
  streams_.output.reset();
  streams_.error.reset();
}

}  // namespace otp::io
