#pragma once

#include <cstdint>
#include <string>

namespace otp::release {

/// Opens each of the descriptors 0, 1 and 2 that is closed, on /dev/null, so that no file or socket
/// opened later gets a number to which somebody prints. The first thing that a program does.
void secure_standard_streams();

/// Gives the owner his rights back when the inherited umask would take them from files made here;
/// otherwise leaves the umask alone.
void repair_umask();

/// Closes every descriptor from 3 on, but for `kept` (-1: none).
void close_inherited(int kept);

/// Marks every descriptor from 3 on to be closed by exec, so that no child inherits what was
/// inherited.
void mark_inherited_close_on_exec();

/// Standard input from /dev/null, output and error appended to the file `log` (created 0640).
/// Returns an error line or nothing.
std::string redirect_streams(const std::string& log);

/// How large a log may grow.
struct LogBounds {
  int64_t bytes_max = 10 << 20;
  int kept = 5;  ///< older ones, as LOG.1 (the newest) to LOG.5
};

/// Moves what the log holds to LOG.1 once it is large enough, and those before it one further; the
/// oldest goes. The file itself stays and becomes empty: all who append to it go on. A full disk
/// costs the older log, never the bound.
void bound_log(const std::string& log, const LogBounds& bounds = {});

}  // namespace otp::release
