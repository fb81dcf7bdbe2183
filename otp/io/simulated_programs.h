#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "otp/base/timeout.h"
#include "otp/io/child_program.h"

/// Child programs for a Simulator: a function says what each command does, no program runs.
///
///     otp::io::SimulatedPrograms programs([](const otp::io::ChildCommand& command) {
///       return otp::io::ScriptedChild{.runs_for = 2s, .output = command.argv[0] + " was here"};
///     });
///     otp::Simulator sim(seed, otp::io::simulated_options({}, {}, programs));
namespace otp::io {

/// What one command does.
struct ScriptedChild {
  std::optional<SystemError> fails = {};  ///< it cannot be started
  Duration runs_for = std::chrono::milliseconds(1);
  ChildExit exit = {};
  std::string output = {};
  std::string error = {};
  bool echoes_input = false;  ///< its output is `output` and then its input
  bool ignores_term = false;
};

class SimulatedPrograms {
 public:
  using Script = std::function<ScriptedChild(const ChildCommand& command)>;

  /// Without a script no command can be started: ENOENT.
  SimulatedPrograms() = default;
  explicit SimulatedPrograms(Script script)
      : script_(std::make_shared<const Script>(std::move(script))) {}

  ScriptedChild play(const ChildCommand& command) const {
    if (script_ != nullptr) return (*script_)(command);
    return {.fails = SystemError{ENOENT, "start the command"}};
  }

 private:
  std::shared_ptr<const Script> script_;
};

}  // namespace otp::io
