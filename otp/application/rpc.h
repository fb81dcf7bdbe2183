#pragma once

#include <vector>

#include "otp/application/application.h"
#include "otp/release/node.h"

namespace otp::internal {

/// Adds the admin command `rpc` to a node: {"command": NAME, "arguments": [TEXT...]} runs the
/// command of that name that an application has, in a process that belongs to the application. Of
/// two with the same name the one of the application that stands first is run.
void add_rpc_command(release::NodeCallbacks& callbacks, System& system,
                     const std::vector<Application>& applications);

}  // namespace otp::internal
