#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "otp/base/log.h"
#include "otp/runtime/poller.h"

namespace otp {

/// Settings of a System. Every field has a default that suits a service.
struct SystemOptions {
  /// Cores, each held by a thread. 0: one per processor the process may use (affinity and the
  /// cgroup's quota count), at most 64.
  uint32_t cores = 0;
  /// Where warnings and reports go; null: nowhere. Must outlive the System.
  LogSink* log = nullptr;
  /// Makes the poller of core `index`; null: a plain one that only sleeps.
  std::function<std::unique_ptr<Poller>(uint32_t index)> poller{};
  /// A callback that runs longer loses its core to a spare thread and is reported. 0: never.
  std::chrono::nanoseconds stuck_after = std::chrono::milliseconds(10);
  /// How long ~System waits for processes before it says what holds it (it then goes on waiting):
  /// which processes, what each waits for and where, and the stacks of callbacks that do not end.
  /// To the log, or to standard error if there is none.
  std::chrono::nanoseconds terminate_report_after = std::chrono::seconds(10);
  /// Called by ~System with what is left although nothing may be: processes, letters, names, wait
  /// timers, and whose they are; in a Simulator also ties to dead processes and blocks of memory.
  /// Null: it is printed and the node aborted, as an invariant of the runtime is broken.
  std::function<void(const std::string& what)> on_leak{};
  /// The most processes that live at once. Address space is reserved for them, memory is not.
  uint32_t processes_max = 1u << 24;
  /// Generations of one slot before it is retired. Lower it only to test that.
  uint32_t generations_max = UINT32_MAX;
  /// Threads of the blocking lane, and how much may wait for one of them.
  uint32_t blocking_threads_max = 16;
  uint32_t blocking_queue_max = 10'000;
  /// Seed of the System's randomness; in a Simulator also of its schedule.
  uint64_t seed = 1;
};

}  // namespace otp
