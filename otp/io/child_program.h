#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "otp/io/descriptor.h"
#include "otp/io/process_identity.h"

namespace otp::io {

/// What to run. Nothing of it passes through a shell.
struct ChildCommand {
  std::vector<std::string> argv;      ///< argv[0] without a slash is looked up in the PATH of `env`
  std::vector<std::string> env = {};  ///< "NAME=value"; the whole environment, nothing is inherited
  std::string directory = {};  ///< empty: the guardian's own, which is the node's at its start
};

/// The node's ends of a command's standard streams; they do not wait (O_NONBLOCK). See ChildPipes.
struct ChildStreams {
  Descriptor input;
  Descriptor output;
  Descriptor error;
};

/// How a command ended.
struct ChildExit {
  enum class How {
    exited,     ///< by itself; code is its exit status
    signalled,  ///< by a signal; code is its number
    lost,       ///< its guardian is gone; it was killed, its status is unknown
  };
  How how = How::exited;
  int code = 0;

  bool success() const { return how == How::exited && code == 0; }
  std::string to_string() const;  ///< "exit status 3", "killed by signal 9 (Killed)", "lost"
};

/// What became of the command with this id. A started one is always followed by exactly one ended
/// one.
struct ChildStarted {
  uint64_t id;
  ProcessIdentity process;
};
struct ChildFailed {
  uint64_t id;
  SystemError error;
};  ///< never ran; e.g. ENOENT, EAGAIN, EMFILE
struct ChildEnded {
  uint64_t id;
  ChildExit exit;
};
struct GuardianLost {
};  ///< the last event ever: nothing can be started any more, make a new guardian
using ChildEvent = std::variant<ChildStarted, ChildFailed, ChildEnded, GuardianLost>;

/// A node's connection to its guardian (guardian.h): starts commands, signals them, tells how they
/// ended.
///
/// A state machine over one descriptor, without threads, timers or waiting: wait until fd() is
/// readable (and, while wants_write(), writable), then call on_ready() and handle the events it
/// returns.
///
///     auto started = otp::io::ChildPrograms::launch({});
///     auto programs = std::get<otp::io::ChildPrograms>(std::move(started));
///     auto streams = programs.start(1, {.argv = {"sha256sum"}, .env = {"PATH=/usr/bin"}});
///     ... poll programs.fd() ...
///     for (otp::io::ChildEvent& event : programs.on_ready()) ...
///
/// Destroying it, or the death of the node by any means, kills every command with its descendants.
///
/// Threads: one at a time; one process owns it.
class ChildPrograms {
 public:
  struct Options {
    /// The program to start as guardian; empty: this program. Its main must call guardian_main().
    std::string program = {};
    std::chrono::milliseconds start_timeout{10000};
    /// A file, made if need be, that the guardian keeps locked until the last of its commands is
    /// gone. launch() waits for it first: so a node that is started at once after a `kill -9` of
    /// the one before finds nothing of it running. Empty: commands of an earlier life are killed
    /// just as surely, but perhaps a little after this one's start.
    std::string lock = {};
    /// A guardian gives up on what cannot be killed after 30 s.
    std::chrono::milliseconds lock_timeout{40000};
  };

  /// Starts a guardian and waits until it is ready (some ms, once at boot).
  ///
  /// Errors: what the system says of starting it; ETIMEDOUT: it is not ready in start_timeout, or
  ///         the lock was held for lock_timeout; EPROTO: the program is no guardian.
  ///
  /// Also makes this OS process ignore SIGPIPE if nobody has set it: writing to a command that does
  /// not read must be an error, not the end of the node.
  static std::variant<ChildPrograms, SystemError> launch(Options options);

  ChildPrograms(ChildPrograms&& other) noexcept { *this = std::move(other); }
  ChildPrograms& operator=(ChildPrograms&& other) noexcept;
  ~ChildPrograms();

  /// Asks for a command; ChildStarted or ChildFailed will follow.
  ///
  /// Takes:   id: chosen by the caller, never used before.
  /// Returns: the streams at once, so that input can be written early; or why it is not asked for:
  ///          EMFILE (no descriptors left here), E2BIG (arguments and environment over 128 KiB),
  ///          EAGAIN (1,024 requests wait already), EPIPE (no guardian), EINVAL (no program, or NUL
  ///          in a text).
  std::variant<ChildStreams, SystemError> start(uint64_t id, const ChildCommand& command);

  /// Sends a signal to the command's whole process group. Right after start() is fine: requests are
  /// carried out in order. Once it has ended this does nothing.
  void signal(uint64_t id, int signal_number);

  int fd() const { return socket_.get(); }
  bool wants_write() const { return !requests_.empty(); }
  std::vector<ChildEvent> on_ready();

  /// Why the guardian has no lock (a folder that cannot be written, a file system without locks),
  /// although one was asked for. Everything else works.
  const std::optional<SystemError>& unlocked() const { return unlocked_; }
  bool lost() const { return !socket_; }
  size_t running() const { return commands_.size(); }  ///< asked for and not yet failed or ended
  pid_t guardian_pid() const { return guardian_; }

  /// Kills all commands and waits until the guardian has seen the last of them go.
  ///
  /// Waits some ms; longer only for processes stuck in the kernel. Returns false after `patience`.
  bool stop(std::chrono::milliseconds patience = std::chrono::milliseconds(5000));

 private:
  struct Request {
    std::string bytes;
    std::vector<Descriptor> streams = {};
  };
  ChildPrograms() = default;

  std::optional<SystemError> await_hello(std::chrono::milliseconds patience);
  void flush(std::vector<ChildEvent>& events);
  void receive(std::vector<ChildEvent>& events);
  void lose(std::vector<ChildEvent>& events);

  Descriptor socket_;
  std::optional<SystemError> unlocked_;
  pid_t keeper_ = -1;    // our child
  pid_t guardian_ = -1;  // its child, which serves
  std::string boot_;
  std::deque<Request> requests_;
  std::unordered_map<uint64_t, ProcessIdentity> commands_;  // pid 0 until started
  std::string buffer_;
};

}  // namespace otp::io
