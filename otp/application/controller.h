#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "otp/application/application_master.h"
#include "otp/application/application_table.h"
#include "otp/behaviour/gen_server.h"

/// The process that starts and stops applications, one master for each. OTP:
/// application_controller.
namespace otp::internal {

inline constexpr const char* kControllerName = "application_controller";

/// What the controller tells the process that started it, as messages: `failed`, a permanent
/// application ended (or a transient one abnormally), so the program must; `all_ended`: the last
/// one that ran ended by itself.
struct ProgramNews {
  enum class What : uint8_t { failed, all_ended };
  What what;
};

class ApplicationController {
 public:
  struct StartApplication {
    using Reply = Result<void>;
    std::string name;
    ApplicationType type = ApplicationType::temporary;
  };
  struct StopApplication {
    using Reply = Result<void>;
    std::string name;
  };
  /// Stops all in reverse order of their start.
  struct StopAll {
    using Reply = void;
  };

  struct Args {
    Pid owner{};  ///< gets ProgramNews; nobody: it is not told
    /// A line for people: what is stopped, has stopped, or ended. Called in the process.
    std::function<void(const std::string& line)> report{};
  };

  explicit ApplicationController(Args args);
  CallResult<Result<void>> handle_call(StartApplication request, From<Result<void>> from);
  CallResult<Result<void>> handle_call(StopApplication request, From<Result<void>> from);
  Async<void> handle_call(StopAll request);
  void handle_cast(MasterNews news);
  void handle_info(ExitMessage message);

 private:
  enum class State : uint8_t { starting, running, stopping };
  struct Waiting {
    StartApplication request;
    From<Result<void>> from;
  };
  struct Entry {
    const Application* application;
    ApplicationType type;
    Pid master;
    State state = State::starting;
    std::optional<ExitReason> failure{};        // of the start
    std::vector<From<Result<void>>> waiting{};  // for the start, later for the stop
    std::vector<Waiting> start_again{};         // asked for while it stopped
  };

  Entry* find(std::string_view name);
  std::optional<Result<void>> begin(StartApplication request, const From<Result<void>>& from);
  std::optional<ExitReason> missing(const Application& application) const;
  void started(Entry& entry, const MasterNews& news);
  void ended(const Entry& entry, const ExitReason& reason);
  void stop_entry(Entry& entry);
  void gone(Pid master, ExitReason reason);
  void report(const std::string& line) const;

  const Args args_;
  ApplicationTable& table_;
  std::vector<Entry> entries_;  // the running ones in the order in which they started
};

/// What the program is told while its applications work; `report` in any process.
struct ControllerHooks {
  /// Everything is up. `details`: what the applications' `ready` functions said, joined by blanks.
  std::function<Async<void>(std::string details)> ready;
  /// A line for people: what was started, stopped, or failed.
  std::function<void(const std::string& line)> report;
  /// The line, which was reported too, that says why the program could not start or go on; may be
  /// empty.
  std::function<void(const std::string& line)> failed = {};
};

/// Asks control_applications for the orderly stop.
struct StopApplications {};

/// Starts the applications in this order, runs until they are to stop, stops them in reverse.
/// Returns the exit status; a start that failed, or a permanent application that ended, gives 1 and
/// has been reported.
///
/// REQUIRES: application::attach() with these applications, whose types are set.
Async<int> control_applications(std::vector<Application> applications, ControllerHooks hooks);

}  // namespace otp::internal
