#pragma once

#include <functional>
#include <optional>
#include <string>

#include "otp/config/diagnostic.h"
#include "otp/config/environment.h"
#include "otp/config/node.h"

namespace otp::config {

/// The bytes of a file, or the reason why there are none, in `error`.
using ReadFile =
    std::function<std::optional<std::string>(const std::string& path, std::string& error)>;

/// Files inside each other, at most.
inline constexpr std::size_t kImportsMax = 16;

/// `over` laid on `base`: mappings are merged key by key, children by their ids, and any other
/// value of `over` replaces that of `base`.
NodePtr merged(const NodePtr& base, const NodePtr& over);

/// A file with what the files of its key `imports` say laid on it, in their order: the last wins.
///
/// Takes: root: the parsed file. path: its name; imports are relative to its folder. read: how
/// files are read; without it imports are refused.
/// Returns: nullptr after a report: a file is missing, no mapping, no YAML or imports itself.
/// Checking the others alone would report what only the missing one can mend.
NodePtr with_imports(const NodePtr& root, const std::string& path, const Environment* environment,
                     const ReadFile& read, Diagnostics& diagnostics);

}  // namespace otp::config
