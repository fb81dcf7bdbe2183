#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "otp/release/outcome.h"

namespace otp::release {

/// The words of a command line, sorted. Says nothing about which commands there are.
struct CommandLine {
  std::string command;                 ///< the first word that is no option; empty: none
  std::vector<std::string> operands;   ///< the words after it
  std::vector<std::string> arguments;  ///< the words behind `--`
  std::string config;
  std::string run_dir;
  std::optional<std::chrono::milliseconds> timeout;
  bool json = false;
  bool no_env = false;
  bool help = false;
};

/// Options may stand anywhere before `--`, as `--config FILE` or `--config=FILE`.
/// Errors: an unknown option, a missing or bad value, an option given twice.
Outcome<CommandLine> parse_command_line(const std::vector<std::string>& words);

}  // namespace otp::release
