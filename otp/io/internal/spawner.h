#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "otp/io/child_program.h"
#include "otp/io/simulated_programs.h"
#include "otp/runtime/runtime.h"

namespace otp::io::internal {

/// Starts programs for a ChildServer: by a guardian, or as a script says. Tells its process by a
/// ChildServerReady message when on_ready() should be called.
class Spawner {
 public:
  struct Started {
    ChildStreams streams = {};
    std::optional<ScriptedChild> scripted = {};
  };
  virtual ~Spawner() = default;
  virtual std::variant<Started, SystemError> start(uint64_t id, const ChildCommand& command) = 0;
  virtual void signal(uint64_t id, int number) = 0;
  virtual std::vector<ChildEvent> on_ready() = 0;
};

/// The one for the calling process's System. Takes: guardian: see ChildServer::Args.
std::variant<std::unique_ptr<Spawner>, SystemError> make_spawner(const std::string& guardian);

}  // namespace otp::io::internal
