#pragma once

/// A supervision tree as text or JSON: what `tree` and the admin page show.
///
///   bank_sup       <0.3.1>  running     supervisor  rest_for_one
///   ├─ ledger      <0.5.1>  running     worker                    permanent  5s
///   ├─ teller      -        restarting  worker                    transient  2s
///   └─ workers     <0.6.1>  running     supervisor  one_for_one   permanent  infinity
///      └─ w1 (fast)  ...
///
/// The name stands in brackets when it is not the id. Both forms depend on nothing but the tree: no
/// locale; bytes that are no UTF-8 are replaced, control characters too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace otp::observe {

enum class TreeKind { worker, supervisor };
/// `undefined`: there is no process. `no_answer`: a supervisor that did not tell its children in
/// time.
enum class TreeState { running, restarting, undefined, suspended, no_answer };

/// One child, or the root. Filled by whoever asked the processes.
struct TreeNode {
  std::string id = {};
  std::string name = {};  ///< registered; may be empty
  TreeKind kind = TreeKind::worker;
  TreeState state = TreeState::running;
  std::string pid = {};       ///< as text; empty when there is no process
  std::string start = {};     ///< the server's type; may be empty, as all below
  std::string strategy = {};  ///< of a supervisor
  std::string restart = {};
  std::string shutdown = {};
  std::optional<uint64_t> mailbox_letters = {};
  std::optional<uint64_t> restarts = {};
  std::vector<TreeNode> children = {};
  uint64_t children_left_out = 0;  ///< there are more than `children`
};

struct TreeOptions {
  bool ascii = false;       ///< for terminals that know no box drawing
  size_t children_max = 0;  ///< of each supervisor; the rest is counted in a line. 0 = all
};

/// One line per node, each with its line end.
std::string tree_text(const TreeNode& root, const TreeOptions& options = {});

/// One JSON object in one line, without line end. Absent strings and numbers are left out, but for
/// `pid`, which is null, and `children`, which supervisors always have.
std::string tree_json(const TreeNode& root);

}  // namespace otp::observe
