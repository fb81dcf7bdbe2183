#include "otp/registry/pg.h"

#include <algorithm>

namespace otp {

void ProcessGroups::handle_call(Join request) {
  Joined& joined = joined_[request.pid];
  if (joined.joins++ == 0) joined.monitor = monitor(request.pid);
  groups_[std::move(request.group)].push_back(request.pid);
}

Result<void> ProcessGroups::handle_call(Leave request) {
  auto group = groups_.find(request.group);
  if (group == groups_.end()) return ExitReason::atom("not_joined");
  std::vector<Pid>& pids = group->second;
  auto found = std::find(pids.begin(), pids.end(), request.pid);
  if (found == pids.end()) return ExitReason::atom("not_joined");
  pids.erase(found);
  if (pids.empty()) groups_.erase(group);
  auto joined = joined_.find(request.pid);
  if (--joined->second.joins == 0) {
    demonitor(joined->second.monitor, true);
    joined_.erase(joined);
  }
  return {};
}

std::vector<Pid> ProcessGroups::handle_call(Members request) {
  auto group = groups_.find(request.group);
  if (group == groups_.end()) return {};
  return group->second;
}

std::vector<std::string> ProcessGroups::handle_call(Groups) {
  std::vector<std::string> names;
  for (const auto& [name, pids] : groups_) names.push_back(name);
  return names;
}

void ProcessGroups::handle_info(Down down) {
  if (joined_.erase(down.pid) == 0) return;
  for (auto group = groups_.begin(); group != groups_.end();) {
    std::erase(group->second, down.pid);
    group = group->second.empty() ? groups_.erase(group) : std::next(group);
  }
}

}  // namespace otp
