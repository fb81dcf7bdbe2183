#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace otp::io {

/// Which operating-system process, beyond doubt: a pid alone is somebody else's a little later.
///
/// Written down when a command starts (`to_text`), so that after a crash of everything the next
/// node can kill what is left of exactly that command and nothing else (`kill_leftovers`).
struct ProcessIdentity {
  pid_t pid = 0;             ///< also its process group, for commands of a guardian
  uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat; 0: unknown (no procfs)
  pid_t session = 0;         ///< a group belongs to one session: the second check of a group
  std::string boot = {};     ///< the kernel's boot id; pids mean nothing in another boot

  std::string to_text() const;
  static std::optional<ProcessIdentity> from_text(std::string_view text);
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

/// What /proc/PID/stat says.
struct ProcessStat {
  pid_t pid = 0;
  char state = '?';  ///< 'Z': ended, waits to be collected
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  uint64_t start_ticks = 0;
};

/// Nothing if there is no such process, or no procfs.
std::optional<ProcessStat> process_stat(pid_t pid);

/// All processes of this pid namespace; empty without procfs.
std::vector<ProcessStat> all_processes();

/// This boot's id; empty without procfs.
std::string boot_id();

/// Kills with SIGKILL what is left of the process group that `leader` led, also when the leader
/// itself is gone.
///
/// Returns: how many processes were signalled. 0 when the group is gone, when the number now
///          belongs to another process, when the machine was booted since, and when there is no
///          procfs to tell.
int kill_leftovers(const ProcessIdentity& leader);

}  // namespace otp::io
