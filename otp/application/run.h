#pragma once

#include <vector>

#include "otp/application/application.h"

namespace otp {

/// Runs the applications as a service, or one command of its command line; the whole of a main.
///
///     program [start]            runs in the foreground: reads the configuration, starts the
///     applications in
///                                the order of their dependencies, prints the tree, stops them in
///                                reverse on TERM, INT or `stop`
///     program check [FILE]       reports every mistake of a configuration; --no-env: for another
///     machine program tree [FILE]        draws the tree that a configuration describes, or the
///     running node's program schema             a JSON Schema of the configuration, for editors
///     program version
/// and, from a release, foreground, start (in the background), stop, status, pid, restart: see
/// otp/release/commands.h. The configuration is --config FILE, or the release's own.
///
/// Environment: NAME_LOG_LEVEL (debug … emergency; default notice), NAME_LOG_FORMAT (text or json),
/// NAME being the first application's name in capitals.
///
/// Returns: the exit status: 0 after an orderly stop, 1 when a permanent application ended by
/// itself or nothing
///          could be started, 2 for a configuration with mistakes.
int run(std::vector<Application> applications, int argc, char** argv);

}  // namespace otp
