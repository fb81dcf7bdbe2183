#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "otp/base/shareable.h"
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
  /// May block: starts what it needs.
  virtual std::optional<SystemError> launch(const ChildPrograms::Options& options) = 0;
  /// After launch(), in the server's process.
  virtual void begin() = 0;
  virtual std::variant<Started, SystemError> start(uint64_t id, const ChildCommand& command) = 0;
  virtual void signal(uint64_t id, int number) = 0;
  virtual std::vector<ChildEvent> on_ready() = 0;
};

/// The one for the calling process's System.
std::unique_ptr<Spawner> make_spawner();

// For the blocking lane.

struct Launched {
  std::unique_ptr<Spawner> spawner;
  std::optional<SystemError> error;
};
unchecked<std::unique_ptr<Launched>> launch(std::unique_ptr<Spawner> spawner,
                                            const ChildPrograms::Options& options);
/// Kills what still runs and returns when it is gone.
void shut_down(std::unique_ptr<Spawner> spawner);

}  // namespace otp::io::internal
