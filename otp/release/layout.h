#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/release/outcome.h"

namespace otp::release {

/// Where everything of one node lies. Paths are absolute.
struct Layout {
  std::string name;  ///< of the release, never of the link by which it was called
  std::string version;
  std::string
      executable;       ///< the real path; empty where it cannot be found (no procfs, odd caller)
  std::string root;     ///< the release directory; empty for a program that runs outside a release
  std::string config;   ///< the configuration file; empty when none was named
  std::string run_dir;  ///< for lock, socket, pid file and log; empty when none was named
  /// How applications take part in this release, by their names, as its release.json says.
  std::vector<std::pair<std::string, std::string>> modes;

  bool in_release() const { return !root.empty(); }
  bool managed() const { return !run_dir.empty(); }

  std::string lock_path() const { return run_dir + "/" + name + ".lock"; }
  std::string socket_path() const { return run_dir + "/" + name + ".sock"; }
  std::string pid_path() const { return run_dir + "/" + name + ".pid"; }
  std::string log_path() const { return run_dir + "/" + name + ".log"; }
};

/// What find_layout() goes by. A test sets `executable` and `environment`; a program leaves them
/// alone.
struct LayoutRequest {
  std::string program_name;     ///< the name outside a release; empty: the executable's file name
  std::string program_version;  ///< the version outside a release
  std::string config_option;    ///< --config
  std::string run_dir_option;   ///< --run-dir
  std::string executable;       ///< empty: executable_path()

  /// The value of an environment variable, or empty. Unset: the real environment.
  std::function<std::string(const std::string& name)> environment;

  /// The run directory that a configuration file asks for, or empty. Unset: files say nothing about
  /// it.
  std::function<Outcome<std::string>(const std::string& config)> run_dir_in_config;
};

/// Finds name, version, configuration and run directory. Reads `release.json`; creates nothing.
///
/// The release is the folder above the `bin` in which the executable lies, if it has a
/// `release.json`. Configuration: --config, <NAME>_CONFIG, the file that release.json names. Run
/// directory: --run-dir, <NAME>_RUN_DIR, what the configuration says, <release>/var. A program
/// outside a release has none unless it is told: it then takes no lock and opens no socket.
/// A relative path counts from the working directory, and under `bazel run` from the folder in
/// which that was typed (BUILD_WORKING_DIRECTORY). A set but empty variable counts as unset.
///
/// Errors: one line: a broken release.json, a relative path without a working directory, a bad
/// name.
Outcome<Layout> find_layout(const LayoutRequest& request);

/// The real path of this program, through all links: /proc/self/exe, or AT_EXECFN without procfs.
/// Empty when neither tells.
std::string executable_path();

/// NAME for the environment variables of `name`: upper case, anything but letters and digits as
/// `_`.
std::string environment_prefix(std::string_view name);

/// Creates the run directory (0700, whatever the umask) and those above it, unless they are there.
/// Returns an empty string, or one line that names the path and what would help.
std::string create_run_dir(const Layout& layout);

}  // namespace otp::release
