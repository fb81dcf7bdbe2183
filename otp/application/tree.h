#pragma once

#include <memory>
#include <string>

#include "otp/config/declarations.h"
#include "otp/observe/tree_text.h"
#include "otp/release/node.h"
#include "otp/runtime/system.h"

/// Trees for people: of a configuration, and of the running node.
namespace otp::internal {

/// The tree that a configuration describes; nothing of it runs, so no node has a pid.
observe::TreeNode declared_tree(const std::string& application, const config::SupervisorDecl& decl);

/// The tree under an application's top supervisor as it is now. A supervisor that does not answer
/// within a second is shown without its children.
Async<observe::TreeNode> live_tree(std::string application);

/// Adds the admin command `tree` to a node.
void add_tree_command(release::NodeCallbacks& callbacks, System& system, std::string application);

}  // namespace otp::internal
