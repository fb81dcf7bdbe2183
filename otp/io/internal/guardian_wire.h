#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/io/descriptor.h"

namespace otp::io::internal {

/// The descriptors under which a guardian finds its socket and, if it has one, its lock
/// (ChildPrograms::Options), and the word that makes a program one.
inline constexpr int kGuardianSocket = 3;
inline constexpr int kGuardianLock = 4;
inline constexpr const char* kGuardianArgument = "--otp-guardian";

/// One datagram takes this much at most; a command's arguments and environment must fit.
inline constexpr size_t kDatagramBytesMax = 128 << 10;

/// The commands' descriptors 0, 1 and 2.
inline constexpr size_t kStandardStreams = 3;

/// One message between a node and its guardian. The fields that a kind does not name are zero.
struct WireMessage {
  enum class Kind : uint8_t {
    hello = 1,  ///< guardian: ready. pid, session
    start,      ///< node: run argv with env in `text`; carries descriptors for 0, 1, 2
    signal,     ///< node: send signal `code` to the whole group of `id`
    started,    ///< guardian: runs. pid, start_ticks
    failed,     ///< guardian: could not start. code = errno, text = what was tried
    exited,     ///< guardian: over. code = exit status, or signal when by_signal
  };
  Kind kind = Kind::hello;
  bool by_signal = false;
  uint64_t id = 0;
  int32_t pid = 0;
  int32_t code = 0;
  int32_t session = 0;
  uint64_t start_ticks = 0;
  std::string text = {};
  std::vector<std::string> argv = {};
  std::vector<std::string> env = {};

  std::string encode() const;
  /// Nothing when the bytes are not exactly one message.
  static std::optional<WireMessage> decode(std::string_view bytes);
};

enum class WireOutcome { done, would_block, closed };

/// Sends one datagram with the descriptors of `streams` (none or three). Never waits, never raises
/// SIGPIPE.
WireOutcome wire_send(int socket, const std::string& bytes, const std::vector<Descriptor>& streams);

/// Receives one datagram and the descriptors that came with it. Never waits.
WireOutcome wire_receive(int socket, std::string& bytes, std::vector<Descriptor>& streams);

}  // namespace otp::io::internal
