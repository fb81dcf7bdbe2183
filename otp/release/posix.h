#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace otp::release {

using Clock = std::chrono::steady_clock;

/// Owns a file descriptor and closes it.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// "cannot <verb> <path>: <text of error number>".
std::string system_error(std::string_view verb, std::string_view path, int error_number);

/// Writes all of `data`, waiting where the descriptor is non-blocking. Returns 0 or an error
/// number.
int write_all(int fd, std::string_view data);

/// Writes `data` to standard output; a reader who has gone away (EPIPE) is no failure.
bool print(std::string_view data);

/// Writes "<name>: <message>\n" to standard error. For commands, which may wait for a slow reader.
void complain(std::string_view name, std::string_view message);

/// The same for a node: when the reader of standard error does not take the line within `patience`,
/// the line is dropped, so that a stalled log cannot hold up a stop.
void report(std::string_view name, std::string_view message,
            std::chrono::milliseconds patience = std::chrono::milliseconds(0));

/// The whole file, if it can be read and is no longer than `bytes_max`; else an error number.
struct FileText {
  std::string text;
  int error_number = 0;
};
FileText read_file(const std::string& path, size_t bytes_max);

/// Milliseconds until `deadline`, rounded up, never negative: poll's argument.
int poll_timeout(Clock::time_point deadline);

/// "30s", "1.5s", "500ms", "2m"; a bare number is seconds. At most a day.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// "3s", "2m 5s", "4h 10m", "3d 2h".
std::string duration_text(std::chrono::milliseconds duration);

}  // namespace otp::release
