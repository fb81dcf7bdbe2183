#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "otp/config/diagnostic.h"
#include "otp/config/environment.h"
#include "otp/config/node.h"

namespace otp::config {

/// Limits of a configuration file. Far above what people write, far below what hurts.
inline constexpr std::size_t kDepthMax = 64;        ///< lists and mappings inside each other
inline constexpr std::size_t kValuesMax = 100'000;  ///< values, those that aliases repeat included

struct Parsed {
  NodePtr root;             ///< nullptr after a syntax error
  Diagnostics diagnostics;  ///< a syntax error alone; else duplicate keys, placeholders, merges
};

enum class Placeholders { replace, keep };

/// Turns YAML text into nodes.
///
/// What the file says is kept as it is written: scalars have no type yet, so `no` and `012` are
/// texts. Anchors, aliases and merge keys (`<<`) work; tags do not; keys are scalars and stand
/// once. Values of the environment are put into scalars (see placeholder.h), never into keys or
/// structure.
///
/// Takes: environment: nullptr to leave variables alone and check the file by itself. placeholders:
/// `keep` for a text that comes from the environment already. file: the name of an imported file.
Parsed parse(std::string_view bytes, const Environment* environment,
             Placeholders placeholders = Placeholders::replace,
             std::shared_ptr<const std::string> file = nullptr);

}  // namespace otp::config
