#pragma once

#include <string>

namespace jobs {

/// Why the database did not do what was asked; then it did nothing of it.
struct StoreError {
  enum class Kind {
    busy,       ///< somebody else holds it; try again
    full,       ///< no space left, or a limit on the file's size
    read_only,  ///< the file, its folder or the file system cannot be written
    in_use,     ///< another node runs on this database
    corrupt,    ///< not a database, or a damaged one
    newer,      ///< made by a later version of this program
    other,      ///< anything else: input and output errors
  };
  Kind kind = Kind::other;
  std::string text = {};  ///< one line that names the path

  /// Nothing is wrong with the data; the same call may succeed a little later.
  bool passes() const { return kind == Kind::busy || kind == Kind::full; }
};

}  // namespace jobs
