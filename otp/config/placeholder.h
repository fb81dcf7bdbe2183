// Environment placeholders in the scalars of a configuration file.
//
//   listen: ${LISTEN:127.0.0.1:8080}   the variable LISTEN, or the default behind the first colon
//   token:  ${TOKEN}                   without a default the variable must be set
//   text:   costs $${PRICE}            `$${` stands for `${`
//
// A default ends at the brace that closes the placeholder: braces inside it must be in pairs. A `$`
// before anything else is a `$`. A variable that is set to nothing is set. What a variable holds is
// text: it is not looked through again, and cannot add keys or structure. Placeholders do not nest.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "otp/config/environment.h"

namespace otp::config {

/// A scalar with its placeholders replaced.
struct Expansion {
  struct Mistake {
    std::size_t nth;  ///< which `${` of the text, from 0
    std::string expected;
    std::string got;
  };
  std::string text;
  bool replaced = false;    ///< there was a placeholder: do not show `text` in a message
  bool unresolved = false;  ///< a variable was not looked up, as `environment` is nullptr
  std::vector<Mistake> mistakes;
};

/// Replaces the placeholders of `text`, in one pass.
///
/// Takes: environment, or nullptr to check the file alone: then only defaults are used.
Expansion expand_placeholders(std::string_view text, const Environment* environment);

}  // namespace otp::config
