#pragma once

#include <string>

#include "otp/release/outcome.h"
#include "otp/release/posix.h"

namespace otp::release {

// The admin socket: a Unix stream socket, mode 0600, that speaks JSON lines.
//
//     -> {"command": "tree", "args": {"json": true}}
//     <- {"ok": true, "result": ...}      or      {"ok": false, "error": "unknown command 'tre'"}
//
// A request may carry an "id" of any kind, which comes back in its answer. Requests of one
// connection are answered one after the other. AdminServer and AdminClient are the two ends.
//
// A Unix socket's address ends at 107 bytes. Longer paths are reached through a descriptor of their
// folder (/proc/self/fd/N/<name>), or, without procfs, by stepping into the folder for a moment; so
// no name is ever cut. Where neither works the error says path, length and limit.

inline constexpr size_t kSocketAddressBytesMax = 107;

/// Binds and listens at `path`, mode 0600. What lies there is removed if it is a socket that nobody
/// answers (a crash leaves one); REQUIRES: the caller holds the instance lock.
/// Threads: with a long path and no procfs the working directory changes for a moment, so call it
/// before other threads run.
Outcome<UniqueFd> listen_at(const std::string& path);

/// Connects to `path`, waiting until `deadline` for room in the listener's queue.
struct Connection {
  UniqueFd fd;
  int error_number = 0;  ///< 0 when connected; ENOENT and ECONNREFUSED mean that nobody listens
  std::string error;
};
Connection connect_to(const std::string& path, Clock::time_point deadline);

/// The process id of the other end's creator, as the kernel sees it from here; 0 if it cannot be
/// seen.
long peer_pid(int fd);

}  // namespace otp::release
