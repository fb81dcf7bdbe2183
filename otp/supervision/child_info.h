#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/pid.h"
#include "otp/supervision/child_spec.h"

/// What supervisors tell about their children.
namespace otp {

/// Where a child is in its life: a process runs; its restart is being tried; there is none.
/// OTP: the pid, `restarting`, `undefined`.
enum class ChildState : uint8_t { running, restarting, stopped };

/// A row of which_children. OTP: {Id, Child, Type, Modules}.
struct ChildInfo {
  std::string id;  ///< empty under a DynamicSupervisor
  Pid pid{};       ///< nobody unless `state` is running
  ChildState state = ChildState::running;
  ChildType type = ChildType::worker;
  std::string server{};  ///< the server type's name; empty: a plain process
  Restart restart = Restart::permanent;
  Shutdown shutdown = kDefaultWorkerShutdown;
  bool significant = false;
  uint64_t restarts = 0;  ///< since it was added
  /// Its descriptor: whether it is a supervisor that can be asked for its own children.
  const internal::ServerType* server_type = nullptr;
};

/// OTP: count_children/1.
struct ChildCount {
  uint64_t specs = 0;        ///< specifications, running or not
  uint64_t active = 0;       ///< processes that live
  uint64_t supervisors = 0;  ///< specifications of type supervisor, running or not
  uint64_t workers = 0;      ///< likewise

  friend bool operator==(const ChildCount&, const ChildCount&) = default;
};

/// What a supervisor is, with its children in start order: for trees.
struct SupervisorInfo {
  std::string strategy{};
  uint32_t intensity = 0;
  Duration period{};
  std::vector<ChildInfo> children{};
  uint64_t children_left_out = 0;  ///< there are more than one answer should hold
};

}  // namespace otp

template <>
struct otp::Shareable<otp::ChildInfo> : std::true_type {};
