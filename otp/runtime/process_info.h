#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "otp/async/async.h"
#include "otp/base/await_stack.h"
#include "otp/base/pid.h"
#include "otp/base/timeout.h"

/// process_info: what a process is doing and what it holds, told by the process itself.
///
///     if (auto info = co_await otp::process_info(pid)) show(info->message_queue_len);
namespace otp {

/// OTP: the values of process_info's status. `running` is said of the asking process alone: who
/// answers others does not run its own code just then.
enum class ProcessStatus : uint8_t { running, runnable, waiting, exiting };

struct ProcessInfo {
  Pid pid{};
  std::string registered_name{};  ///< empty: none
  std::string initial_call{};     ///< the server's type, or what kind of process it is
  ProcessStatus status = ProcessStatus::waiting;
  std::string waiting_for{};  ///< reply, receive, sleep, operation, message, ...
  AwaitStack await_stack{};   ///< where its coroutines stand; empty between two messages
  uint64_t message_queue_len = 0;
  std::vector<std::string> messages{};  ///< the oldest, as text, each at most 512 bytes
  std::vector<Pid> links{};
  std::vector<Pid> monitors{};  ///< whom it monitors
  std::vector<Pid> monitored_by{};
  std::vector<Pid> ancestors{};  ///< the parent first, as far as known
  bool trap_exit = false;
  uint64_t dropped_messages = 0;  ///< by a full mailbox
};

struct ProcessInfoOptions {
  size_t messages_max = 20;
  Timeout timeout = std::chrono::seconds(5);
};

/// A snapshot; nullopt: there is no such process (any more).
///
/// Asked by a signal: a process that waits in a callback answers at once, one whose callback runs
/// when that lets go. What the caller sent before has arrived in the snapshot.
///
/// Threads: inside a process.
/// Errors:  throws Exit `timeout` when the process has not answered within options.timeout.
/// OTP:     process_info/1,2.
Async<std::optional<ProcessInfo>> process_info(Pid pid, ProcessInfoOptions options = {});

}  // namespace otp
