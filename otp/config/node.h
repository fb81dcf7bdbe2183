#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "otp/config/position.h"

namespace otp::config {

struct Node;
/// Nodes are immutable once parsed: an alias shares its anchor's node.
using NodePtr = std::shared_ptr<const Node>;

/// A value of a configuration file as it is written, before anybody knows what type it should have.
struct Node {
  enum class Kind : uint8_t { nothing, scalar, list, map };

  struct Entry {
    std::string key;
    Position key_at;
    NodePtr value;
  };

  Kind kind = Kind::nothing;
  bool plain = false;   ///< a scalar without quotes
  bool hidden = false;  ///< holds text of the environment, which no message may show
  bool unknown =
      false;  ///< its text is not known: it was reported already, or is not to be looked up
  Position at;
  std::string text;            ///< of a scalar; of nothing its spelling: ``, `~` or `null`
  std::string written;         ///< of a hidden scalar of the file: the text with its placeholders
  std::vector<NodePtr> items;  ///< of a list
  std::vector<Entry> entries;  ///< of a map, each key once
  std::size_t weight = 1;      ///< how many nodes a walk through it visits

  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::list; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_nothing() const { return kind == Kind::nothing; }

  const Entry* find(std::string_view key) const {
    for (const Entry& entry : entries) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }

  /// This node or one inside it is unknown.
  bool has_unknown() const;

  /// What an error says was found: `a list`, `"5 s"`, `the value of ${PORT}`.
  std::string got() const;
};

}  // namespace otp::config
