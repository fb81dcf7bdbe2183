#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "otp/base/result.h"
#include "otp/behaviour/gen_server.h"
#include "otp/runtime/runtime.h"

/// pg: named groups of processes, for telling all of them, or any one.
///
///     otp::child<otp::ProcessGroups>("groups", {}, {.name = "groups"})      // a scope, in the
///     tree
///
///     const otp::Name<otp::ProcessGroups> groups("groups");
///     co_await otp::ProcessGroups::join(groups, "workers", otp::self());
///     for (otp::Pid each : co_await otp::ProcessGroups::members(groups, "workers")) ...
///
/// Any process may join and leave for any other. A process that joined twice is in the group twice.
/// What a process had joined ends with it. A Registry with duplicate keys does the same for
/// processes that register themselves, with values, and is read without waiting. OTP: pg, one node.
namespace otp {

class ProcessGroups {
 public:
  using Ref = Server<ProcessGroups>;
  struct Join {
    using Reply = void;
    std::string group;
    Pid pid;
  };
  struct Leave {
    using Reply = Result<void>;
    std::string group;
    Pid pid;
  };
  struct Members {
    using Reply = std::vector<Pid>;
    std::string group;
  };
  struct Groups {
    using Reply = std::vector<std::string>;
  };

  /// OTP: pg:join/3.
  static auto join(const Ref& scope, std::string group, Pid pid) {
    return call(scope, Join{std::move(group), pid});
  }
  /// Undoes one join. Error: `not_joined`. OTP: pg:leave/3.
  static auto leave(const Ref& scope, std::string group, Pid pid) {
    return call(scope, Leave{std::move(group), pid});
  }
  /// In the order in which they joined, once for each join. OTP: pg:get_members/2.
  static auto members(const Ref& scope, std::string group) {
    return call(scope, Members{std::move(group)});
  }
  /// Those that have members, in the order of their names. OTP: pg:which_groups/1.
  static auto which_groups(const Ref& scope) { return call(scope, Groups{}); }

  // Callbacks.
  void handle_call(Join request);
  Result<void> handle_call(Leave request);
  std::vector<Pid> handle_call(Members request);
  std::vector<std::string> handle_call(Groups);
  void handle_info(Down down);

 private:
  struct Joined {
    Reference monitor;
    uint32_t joins = 0;
  };

  std::map<std::string, std::vector<Pid>> groups_;  // none is empty
  std::unordered_map<Pid, Joined> joined_;
};

}  // namespace otp
