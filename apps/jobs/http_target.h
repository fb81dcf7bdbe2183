#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jobs {

/// A request target, taken apart: `/jobs/7?state=done` or `http://host/jobs/7`.
struct HttpTarget {
  std::vector<std::string>
      segments;            ///< of the path, decoded: {"jobs", "7"}; "/a//b" has an empty one
  std::string_view query;  ///< not decoded; a part of the text that was parsed

  /// Nothing when it is neither a path nor an absolute URL, or has a broken %-escape or control
  /// characters.
  static std::optional<HttpTarget> parse(std::string_view text);
};

/// The parameters of a query, decoded; nothing when an escape in it is broken.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query);

}  // namespace jobs
