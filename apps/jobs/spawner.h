#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/jobs/job.h"
#include "apps/jobs/names.h"
#include "apps/jobs/readiness.h"
#include "otp/behaviour/gen_server.h"
#include "otp/io/child_program.h"

namespace jobs {

// ---- Between a worker and the spawner. A worker runs one command.

/// Starts a command for `worker`. It gets CommandFailed; or CommandStreams, then CommandStarted or
/// CommandFailed, and after a start CommandEnded. If the worker ends first, its command is killed.
struct StartCommand {
  otp::Pid worker;
  JobId job = 0;
  otp::io::ChildCommand command;
};
/// Sends a signal to the group of the worker's command.
struct SignalCommand {
  otp::Pid worker;
  int number = 0;
};
struct CommandStreams {
  otp::unchecked<otp::io::ChildStreams> streams;  ///< its only owner
};
struct CommandStarted {
  std::string process;  ///< a ProcessIdentity as text
};
struct CommandFailed {
  otp::io::SystemError error;
};
struct CommandEnded {
  otp::io::ChildExit exit;
};

/// Kills what runs for a job and answers when nothing of it is left.
struct EndCommandsOf {
  using Reply = void;
  JobId job = 0;
};

/// Owns the connection to the guardian, which starts the commands and kills them all when the
/// connection ends. A guardian that is gone is replaced; its commands count as lost.
class Spawner {
 public:
  struct Flush {};
  using Info = otp::Protocol<DescriptorsReady, Flush>;

  // Client API.
  static void start_command(JobId job, otp::io::ChildCommand command) {
    (void)otp::cast(kSpawner, StartCommand{otp::self(), job, std::move(command)});
  }
  static void signal_command(int number) {
    (void)otp::cast(kSpawner, SignalCommand{otp::self(), number});
  }
  static auto end_commands_of(JobId job, otp::Timeout timeout) {
    return otp::try_call(kSpawner, EndCommandsOf{job}, {.timeout = timeout});
  }

  // Callbacks.
  otp::Async<otp::Init> init();
  otp::CallResult<void> handle_call(EndCommandsOf request, otp::From<void> from);
  void handle_cast(StartCommand request);
  void handle_cast(SignalCommand request);
  otp::Async<otp::CastResult> handle_info(DescriptorsReady);
  otp::Async<otp::CastResult> handle_info(Flush);
  void handle_info(otp::Down down);
  otp::CastResult handle_info(otp::ExitMessage message);
  otp::Async<void> terminate(otp::ExitReason reason);

 private:
  struct Command {
    otp::Pid worker;
    otp::Reference monitor;
    JobId job = 0;
    std::vector<otp::From<void>> told_at_end = {};
  };

  otp::Async<std::optional<otp::io::SystemError>> launch();
  otp::Async<otp::CastResult> drive();
  void handle(otp::io::ChildEvent& event);
  void forget(uint64_t id);
  void flush_later();

  std::optional<otp::io::ChildPrograms> programs_;
  std::optional<Readiness> readiness_;
  std::unordered_map<uint64_t, Command> commands_;    // by the guardian's id for them
  std::unordered_map<uint64_t, uint64_t> by_worker_;  // pid to that id
  uint64_t next_id_ = 1;
  bool flush_planned_ = false;
};

}  // namespace jobs
