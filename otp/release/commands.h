#pragma once

#include <functional>
#include <string>
#include <vector>

#include "otp/release/node.h"

namespace otp::release {

/// What a command that needs no node gets: `check FILE`, `tree FILE`, a program's own commands.
struct CommandContext {
  Layout layout;  ///< layout.config is the file to look at: FILE, --config, or the release's own
  std::vector<std::string> arguments;
  bool json = false;
  bool no_env = false;  ///< --no-env: the file is checked for another machine
};

/// A command of the program's own, such as `schema`. Runs in the process of the command, without a
/// node.
struct ExtraCommand {
  std::string name;
  std::string help;  ///< one line for --help
  std::function<int(const CommandContext&)> run;
};

/// What a program supplies. Only `run` must be set.
struct NodeHooks {
  std::string name;             ///< outside a release; empty: the executable's file name
  std::string version;          ///< outside a release
  std::string version_details;  ///< further lines for `version`

  /// Runs the node until it ends, and returns the exit status. See RunContext.
  std::function<int(RunContext&)> run;
  /// Checks a configuration without starting anything: kExitOk, or kExitUsage after saying what is
  /// wrong.
  std::function<int(const CommandContext&)> check;
  /// Prints the tree that a configuration describes (`tree FILE`). The running node's tree is the
  /// admin command `tree`, which `run` adds to RunContext::admin().
  std::function<int(const CommandContext&)> describe_tree;
  std::vector<ExtraCommand> commands;
  /// See LayoutRequest.
  std::function<Outcome<std::string>(const std::string& config)> run_dir_in_config;
};

/// The command line of a program or release:
///
///     foreground | start | stop | restart | status | pid | version | check [FILE] | tree [FILE]
///     rpc COMMAND [ARGUMENT]...   admin COMMAND [JSON]
///     --config FILE   --run-dir DIR   --timeout 30s   --json   --no-env   --help   -- ARGUMENTS
///
/// Relative paths count from the folder in which the command was typed, also under `bazel run`,
/// which starts programs elsewhere.
///
/// Without a command a program outside a release runs in the foreground; a release prints its
/// usage. Exit statuses: see node.h. `stop` of a node that does not run is no failure.
///
/// To be called first in main: it opens closed standard streams, forks as process 1 and for
/// `start`, and sets up the signals, all of which must come before any thread.
int run_commands(const NodeHooks& hooks, int argc, const char* const* argv);

}  // namespace otp::release
