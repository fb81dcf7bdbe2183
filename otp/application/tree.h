#pragma once

#include <string>
#include <vector>

#include "otp/config/declarations.h"
#include "otp/observe/tree_text.h"
#include "otp/release/node.h"
#include "otp/runtime/system.h"

/// Trees for people: of a configuration, and of the running node.
namespace otp::internal {

/// The tree that a configuration describes; nothing of it runs, so no node has a pid.
observe::TreeNode declared_tree(const std::string& application, const config::SupervisorDecl& decl);

/// The tree under an application's top supervisor as it is now: which process runs, by which
/// strategy, restarted how. Takes two seconds at most; a supervisor that has not answered by then
/// says `no_answer`. `undefined`: the application does not run.
Async<observe::TreeNode> live_tree(std::string application);

/// The trees of several, one below the other; in JSON a list, if there are several.
Async<std::string> live_trees(std::vector<std::string> applications, bool as_json);

/// Adds the admin command `tree` to a node.
void add_tree_command(release::NodeCallbacks& callbacks, System& system,
                      std::vector<std::string> applications);

}  // namespace otp::internal
