#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "otp/application/application.h"

/// The process that starts one application, is the parent of its top supervisor, and ends it.
/// OTP: application_master.
namespace otp::internal {

/// What the master tells the controller, which it is linked to.
struct MasterNews {
  enum class What : uint8_t { started, failed, ended };
  What what;
  std::string name;
  Pid master;
  Pid supervisor{};     ///< started
  ExitReason reason{};  ///< failed: of the start; ended: of the top supervisor
};

/// Asks a master to stop its application.
struct StopMaster {};

/// The body of the process. It tells `controller` once whether the start succeeded, and then of an
/// end of its own accord. When it has ended, nothing of the application's tree runs.
///
/// Takes: application: outlives the process. group: what its processes belong to.
Async<void> application_master(const Application* application, uint32_t group, Pid controller);

/// The name under which an application's top supervisor is registered when the application has no
/// start of its own.
std::string top_supervisor_name(const std::string& application);

}  // namespace otp::internal
