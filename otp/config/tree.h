#pragma once

#include "otp/config/declarations.h"
#include "otp/config/diagnostic.h"
#include "otp/config/node.h"

namespace otp::config {

/// Reads a supervisor and everything below it.
///
/// Ids must be unique within a supervisor, names within the whole tree. References between children
/// may point forwards and into other supervisors. Reports every mistake; what it returns after one
/// is incomplete.
SupervisorDecl read_tree(const Node& supervisor, const ApplicationDecl& application,
                         Diagnostics& diagnostics);

}  // namespace otp::config
