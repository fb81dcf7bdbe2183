#pragma once

#include <string>

#include "otp/config/declarations.h"

namespace otp::config {

/// A JSON Schema (draft 2020-12) of an application's configuration files, for editors: they
/// complete and check keys, words and arguments while one types. The same application gives the
/// same bytes.
///
/// It is weaker than check(): references, durations' limits and unique ids need the whole tree.
std::string json_schema(const ApplicationDecl& application);

}  // namespace otp::config
