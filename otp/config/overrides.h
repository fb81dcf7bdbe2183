#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "otp/config/declarations.h"
#include "otp/config/diagnostic.h"
#include "otp/config/environment.h"
#include "otp/config/node.h"

namespace otp::config {

/// `BANK__`: how the names of the variables begin that override values of the application `bank`.
std::string override_prefix(std::string_view application);

/// The variables that would override something, by name: what `BANK__…` may be for this file.
std::vector<std::string> override_names(const Node& root, const ApplicationDecl& application);

/// The file with the values that the environment overrides.
///
/// Reports variables with the application's prefix that fit no value, or more than one.
NodePtr apply_overrides(const NodePtr& root, const ApplicationDecl& application,
                        const Environment& environment, Diagnostics& diagnostics);

}  // namespace otp::config
