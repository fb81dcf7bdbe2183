#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/bounded_writer.h"
#include "otp/base/pid.h"
#include "otp/base/timeout.h"

namespace otp::internal {
struct Letter;
}

/// What sys tells of a server: its status, its figures, and what goes in and out.
namespace otp::sys {

/// What a server is doing as far as sys is concerned.
enum class Mode : uint8_t { running, suspended };

/// OTP: what sys:get_status/1 returns. The process dictionary has no counterpart but the two
/// entries that OTP keeps there, ancestors and initial call.
struct Status {
  Pid pid{};
  std::string name{};          ///< registered, or empty
  std::string behaviour{};     ///< gen_server, gen_statem
  std::string initial_call{};  ///< the server's type
  Mode mode = Mode::running;
  bool hibernating = false;
  Pid parent{};
  std::vector<Pid> ancestors{};  ///< the parent first
  bool trap_exit = false;
  uint64_t message_queue_len = 0;
  std::vector<std::string> log{};  ///< the events kept by sys::log, the oldest first
  std::string state{};             ///< as format_status or reflection prints it, at most 8 KiB
};

/// Counted since statistics were switched on.
struct Statistics {
  Duration age{};  ///< since then
  uint64_t messages_in = 0;
  uint64_t messages_out = 0;  ///< replies
};

/// One thing that went in or out of a server. Valid while the function that got it runs.
struct Event {
  enum class Kind : uint8_t { call, cast, info, reply, down, exit };
  Kind kind = Kind::info;
  Pid peer{};               ///< who sent it; of a reply, who gets it
  std::string_view type{};  ///< of the message: `Increment`; of a void reply empty
  internal::Letter* letter = nullptr;

  bool is_out() const { return kind == Kind::reply; }
  /// `call Increment{by: 2} from <0.5.1>`, `reply 42 to <0.5.1>`.
  void format(BoundedWriter& out) const;
  std::string to_string(size_t bytes_max = 512) const;
};

/// Sees each event, in the server's process; false: it is not wanted any more. What it throws
/// removes it.
using EventFunction = std::function<bool(const Event&)>;

}  // namespace otp::sys
