#pragma once

#include <vector>

#include "otp/application/application.h"
#include "otp/application/control.h"
#include "otp/config/check.h"

namespace otp {

struct RunOptions {
  /// What else makes the configuration, at every boot: from a vault, say. See config::Provider.
  std::vector<config::Provider> providers{};
};

/// Runs the applications as a service, or one command of its command line; the whole of a main.
///
///     program [foreground]   reads the configuration, starts the applications in the order of
///                            their dependencies, prints their trees, and stops them in reverse
///                            on TERM, INT or `stop`
///     program check [FILE]   reports every mistake; --no-env: of a file for another machine
///     program tree [FILE]    draws the tree that a configuration describes, or the running one
///     program schema         a JSON Schema of the configuration, for editors
///     program version
///
/// and, with a run directory, as a release has: start (in the background), stop, status, pid,
/// restart, rpc; see otp/release/commands.h. The configuration is --config FILE, or the release's.
///
/// Environment: NAME_LOG_LEVEL (debug to emergency; default notice), NAME_LOG_FORMAT (text, json),
/// NAME_LOG_BYTES; NAME is the first application's name in capitals.
///
/// Returns: the exit status: 0 after an orderly stop; 1 when a permanent application ended by
/// itself or one could not be started; 2 for a configuration with mistakes.
int run(std::vector<Application> applications, int argc, char** argv, RunOptions options = {});

}  // namespace otp
