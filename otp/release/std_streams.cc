#include "otp/release/std_streams.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "otp/release/posix.h"

namespace otp::release {
namespace {

constexpr int kFirstInherited = 3;
constexpr unsigned kCloseRangeCloexec = 4;  // CLOSE_RANGE_CLOEXEC, Linux 5.11
constexpr rlim_t kDescriptorsTriedMax = 65'536;

bool close_range(unsigned first, unsigned last, unsigned flags) {
  return first > last || ::syscall(SYS_close_range, first, last, flags) == 0;
}

/// The open descriptors from 3 on, for kernels without close_range.
std::vector<int> inherited_descriptors() {
  std::vector<int> found;
  if (DIR* folder = ::opendir("/proc/self/fd")) {
    while (const dirent* entry = ::readdir(folder)) {
      int fd = std::atoi(entry->d_name);
      if (fd >= kFirstInherited && fd != ::dirfd(folder)) found.push_back(fd);
    }
    ::closedir(folder);
    return found;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  int last = static_cast<int>(std::min(limit.rlim_cur, kDescriptorsTriedMax));
  for (int fd = kFirstInherited; fd < last; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) found.push_back(fd);
  }
  return found;
}

/// Something to hold a standard descriptor. Without /dev it is a folder: using it just fails.
int open_nothing() {
  int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY);
  return fd >= 0 ? fd : ::open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
}

}  // namespace

void secure_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one, as those below it are open by now.
    int opened = open_nothing();
    if (opened == fd) ::fcntl(fd, F_SETFD, 0);  // children keep their standard streams
  }
}

void repair_umask() {
  mode_t mask = ::umask(077);
  if ((mask & 0700) == 0) ::umask(mask);
}

void close_inherited(int kept) {
  if (kept < kFirstInherited) {
    if (close_range(kFirstInherited, ~0U, 0)) return;
  } else if (close_range(kFirstInherited, static_cast<unsigned>(kept) - 1, 0) &&
             close_range(static_cast<unsigned>(kept) + 1, ~0U, 0)) {
    return;
  }
  for (int fd : inherited_descriptors()) {
    if (fd != kept) ::close(fd);
  }
}

void mark_inherited_close_on_exec() {
  if (close_range(kFirstInherited, ~0U, kCloseRangeCloexec)) return;
  for (int fd : inherited_descriptors()) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

std::string redirect_streams(const std::string& log) {
  UniqueFd nothing(open_nothing());
  UniqueFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640));
  if (!out.valid()) return system_error("open the log file", log, errno);
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(out.get(), STDOUT_FILENO);
  ::dup2(out.get(), STDERR_FILENO);
  return "";
}

namespace {

/// Appends all of `from` to a new file. False: the copy is not complete.
bool copy_to(int from, const std::string& path) {
  UniqueFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0640));
  if (!out.valid()) return false;
  std::vector<char> block(1 << 16);
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(from, block.data(), block.size(), at);
    if (count == 0) return true;
    if (count < 0) return false;
    if (write_all(out.get(), {block.data(), static_cast<size_t>(count)}) != 0) return false;
    at += count;
  }
}

}  // namespace

void bound_log(const std::string& log, const LogBounds& bounds) {
  struct stat info{};
  if (::stat(log.c_str(), &info) != 0 || info.st_size < bounds.bytes_max) return;
  UniqueFd file(::open(log.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return;
  auto numbered = [&](int number) { return log + "." + std::to_string(number); };
  if (bounds.kept > 0) {
    for (int number = bounds.kept - 1; number > 0; --number) {
      ::rename(numbered(number).c_str(), numbered(number + 1).c_str());
    }
    if (!copy_to(file.get(), numbered(1))) ::unlink(numbered(1).c_str());
  }
  [[maybe_unused]] int cut = ::ftruncate(file.get(), 0);
}

}  // namespace otp::release
