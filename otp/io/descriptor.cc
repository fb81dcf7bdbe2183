#include "otp/io/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace otp::io {

std::string SystemError::to_string() const {
  char buffer[128];
  return what + ": " + ::strerror_r(code, buffer, sizeof buffer);
}

SystemError SystemError::last(std::string what) {
  const int code = errno;
  return {.code = code, .what = std::move(what)};
}

void Descriptor::reset() {
  // Not repeated after EINTR: Linux has closed the descriptor by then, and its number may be
  // another's.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::variant<Pipe, SystemError> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError::last("make a pipe");
  return Pipe{.read_end = Descriptor(ends[0]), .write_end = Descriptor(ends[1])};
}

void set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

bool read_small_file(const std::string& path, std::string& text, size_t size_max) {
  text.clear();
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  char buffer[4096];
  while (text.size() < size_max) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return true;
}

}  // namespace otp::io
