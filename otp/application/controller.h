#pragma once

#include <memory>
#include <string>
#include <vector>

#include "otp/application/application.h"
#include "otp/runtime/system.h"

/// Starts applications in order, watches them, stops them in reverse. One process, spawned by
/// otp::run.
namespace otp::internal {

/// An application with the tree that it is to run.
struct PlannedApplication {
  Application application;
  SupervisorSpec tree;
};

/// What the controller tells while it works; called in its process.
struct ControllerHooks {
  /// Everything is up. `details`: what the applications' `ready` functions said, joined by blanks.
  std::function<Async<void>(std::string details)> ready;
  /// A line for people: what was started, stopped, or failed.
  std::function<void(const std::string& line)> report;
};

/// Asks the controller for the orderly stop.
struct StopApplications {};

/// Runs until everything has stopped. Returns the exit status; a start that failed, or a permanent
/// application that ended, gives 1 and has been reported.
Async<int> control_applications(std::vector<PlannedApplication> plan, ControllerHooks hooks);

/// The name under which an application's top supervisor is registered.
std::string top_supervisor_name(const std::string& application);

}  // namespace otp::internal
