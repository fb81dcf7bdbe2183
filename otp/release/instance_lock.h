#pragma once

#include <optional>
#include <string>

#include "otp/release/posix.h"

namespace otp::release {

/// What the holder of an instance lock wrote about itself: for messages, never to send a signal to.
struct LockHolder {
  std::string note;  ///< such as "pid 4711"; empty when it had no time to write
};

struct LockAttempt;

/// The right to be the one node of a run directory: a lock on an open file that the kernel drops
/// when the holder ends, however it ends. So a crash or a reboot leaves nothing stale behind, and
/// no number in a file decides.
///
/// The file itself stays for ever; removing it would let two nodes each lock a file of that name.
/// The lock belongs to the open file (OFD), so closing another descriptor of the file does not drop
/// it; the descriptor is closed by exec, so children do not hold it. A fork without exec does,
/// while it lives.
class InstanceLock {
 public:
  InstanceLock() = default;

  /// Tries once, without waiting. Refuses a lock file that is a link, a folder or another non-file.
  static LockAttempt acquire(const std::string& path);

  /// Writes the note that others see in LockHolder. Returns an error line or nothing.
  std::string write_note(const std::string& note);

  bool held() const { return fd_.valid(); }
  /// Drops the lock; so does the destructor.
  void release() { fd_.reset(); }
  /// Leaves the lock to the process: only its end drops it.
  void keep_for_life() { (void)fd_.release(); }

 private:
  InstanceLock(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

/// Exactly one of the three is set.
struct LockAttempt {
  InstanceLock lock;                 ///< held()
  std::optional<LockHolder> holder;  ///< somebody else has it
  std::string error;                 ///< the file cannot be used: one line with its path
};

/// Looks whether somebody holds the lock, without taking it even for a moment, so that a `status`
/// can never make a `start` fail.
struct LockState {
  enum class Kind { free, held, unknown };
  Kind kind = Kind::free;
  LockHolder holder;  ///< when held
  std::string error;  ///< when unknown
};
LockState query_lock(const std::string& path);

/// Writes `<pid>\n` for people and their tools, by renaming a new file over the old: a link or a
/// lying file of that name is replaced, never followed or read. Returns an error line or nothing.
std::string write_pid_file(const std::string& path, long pid);

/// Removes the pid file. Only while holding the lock.
void remove_pid_file(const std::string& path);

}  // namespace otp::release
