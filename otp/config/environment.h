#pragma once

#include <functional>
#include <map>
#include <string>

namespace otp::config {

/// Environment variables by name. A copy, so that a check sees one state of them and a test its
/// own.
using Environment = std::map<std::string, std::string, std::less<>>;

/// The variables of this OS process.
Environment process_environment();

}  // namespace otp::config
