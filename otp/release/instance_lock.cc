#include "otp/release/instance_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace otp::release {
namespace {

constexpr size_t kNoteBytesMax = 256;
constexpr int kReopensMax = 16;

struct flock whole_file() {
  struct flock range{};  // l_pid must be 0 for a lock of the open file
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

std::string read_note(int fd) {
  char buffer[kNoteBytesMax];
  ssize_t count = ::pread(fd, buffer, sizeof buffer, 0);
  std::string note(buffer, count > 0 ? static_cast<size_t>(count) : 0);
  note.resize(std::min(note.size(), note.find('\n')));
  for (char& c : note) {
    if (c < ' ' || c > '~') c = '?';
  }
  return note;
}

bool same_file(int fd, const std::string& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

LockAttempt InstanceLock::acquire(const std::string& path) {
  LockAttempt attempt;
  for (int round = 0; round < kReopensMax; ++round) {
    UniqueFd fd(::open(path.c_str(),
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600));
    if (!fd.valid()) {
      attempt.error = system_error("open the lock file", path, errno);
      return attempt;
    }
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      attempt.error = "cannot use the lock file " + path + ": it is not a plain file";
      return attempt;
    }
    ::fchmod(fd.get(), 0600);  // open's mode went through the umask
    struct flock range = whole_file();
    if (::fcntl(fd.get(), F_OFD_SETLK, &range) != 0) {
      if (errno == EAGAIN || errno == EACCES) {
        attempt.holder = LockHolder{.note = read_note(fd.get())};
      } else {
        attempt.error = system_error("lock", path, errno);
      }
      return attempt;
    }
    // Somebody may have removed or replaced the file in between; then this lock guards nothing.
    if (!same_file(fd.get(), path)) continue;
    attempt.lock = InstanceLock(std::move(fd), path);
    return attempt;
  }
  attempt.error = "cannot lock " + path + ": somebody keeps replacing the file";
  return attempt;
}

std::string InstanceLock::write_note(const std::string& note) {
  std::string line = note.substr(0, kNoteBytesMax - 1) + "\n";
  ssize_t written = ::pwrite(fd_.get(), line.data(), line.size(), 0);
  if (written != static_cast<ssize_t>(line.size())) {
    return system_error("write", path_, written < 0 ? errno : ENOSPC);
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(line.size())) != 0) {
    return system_error("write", path_, errno);
  }
  return "";
}

LockState query_lock(const std::string& path) {
  LockState state;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return state;  // never started here
    state.kind = LockState::Kind::unknown;
    state.error = system_error("open the lock file", path, errno);
    return state;
  }
  struct flock range = whole_file();
  if (::fcntl(fd.get(), F_OFD_GETLK, &range) != 0) {
    state.kind = LockState::Kind::unknown;
    state.error = system_error("query the lock", path, errno);
  } else if (range.l_type != F_UNLCK) {
    state.kind = LockState::Kind::held;
    state.holder.note = read_note(fd.get());
  }
  return state;
}

std::string write_pid_file(const std::string& path, long pid) {
  std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) return system_error("create", fresh, errno);
  ::fchmod(fd.get(), 0644);
  int error = write_all(fd.get(), std::to_string(pid) + "\n");
  if (error == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return "";
  ::unlink(fresh.c_str());
  return system_error("write the pid file", path, error);
}

void remove_pid_file(const std::string& path) {
  ::unlink(path.c_str());  // already gone, or a folder somebody put there: nothing to mend
}

}  // namespace otp::release
