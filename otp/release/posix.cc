#include "otp/release/posix.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace otp::release {
namespace {

std::string line_of(std::string_view name, std::string_view message) {
  std::string line(name);
  return line.append(": ").append(message).append("\n");
}

}  // namespace

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::string system_error(std::string_view verb, std::string_view path, int error_number) {
  std::string text = "cannot ";
  text.append(verb).append(" ").append(path).append(": ");
  return text + std::system_category().message(error_number);
}

int write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t written = ::write(fd, data.data(), data.size());
    if (written >= 0) {
      data.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

bool print(std::string_view data) {
  int error = write_all(STDOUT_FILENO, data);
  return error == 0 || error == EPIPE;
}

void complain(std::string_view name, std::string_view message) {
  // Nobody is left to be told that standard error is gone.
  (void)write_all(STDERR_FILENO, line_of(name, message));
}

void report(std::string_view name, std::string_view message, std::chrono::milliseconds patience) {
  std::string line = line_of(name, message);
  pollfd wait{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return;
  struct stat info{};
  bool may_block = ::fstat(STDERR_FILENO, &info) != 0 || !S_ISREG(info.st_mode);
  iovec part{.iov_base = line.data(), .iov_len = line.size()};
  // Between poll and write another thread may fill the pipe, so the write itself must not wait
  // either.
  if (may_block && ::pwritev2(STDERR_FILENO, &part, 1, -1, RWF_NOWAIT) >= 0) return;
  if (may_block && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) return;
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

FileText read_file(const std::string& path, size_t bytes_max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) return {.text = "", .error_number = errno};
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return {.text = "", .error_number = errno};
  if (S_ISDIR(info.st_mode)) return {.text = "", .error_number = EISDIR};
  if (!S_ISREG(info.st_mode)) return {.text = "", .error_number = EINVAL};
  FileText file;
  char buffer[4096];
  while (true) {
    ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {.text = "", .error_number = errno};
    if (count == 0) return file;
    file.text.append(buffer, static_cast<size_t>(count));
    if (file.text.size() > bytes_max) return {.text = "", .error_number = EFBIG};
  }
}

int poll_timeout(Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 24 * 3600 * 1000));
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  // from_chars, as strtod would read the decimal point of the user's locale.
  double number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  double factor = 0;
  if (unit.empty() || unit == "s") factor = 1000;
  if (unit == "ms") factor = 1;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  if (factor == 0 || number * factor > 24 * 3'600'000.0) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(number * factor));
}

std::string duration_text(std::chrono::milliseconds duration) {
  int64_t seconds = duration.count() / 1000;
  auto both = [](int64_t big, const char* unit, int64_t small, const char* small_unit) {
    return std::to_string(big) + unit + " " + std::to_string(small) + small_unit;
  };
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return both(seconds / 60, "m", seconds % 60, "s");
  if (seconds < 86'400) return both(seconds / 3600, "h", seconds / 60 % 60, "m");
  return both(seconds / 86'400, "d", seconds / 3600 % 24, "h");
}

}  // namespace otp::release
