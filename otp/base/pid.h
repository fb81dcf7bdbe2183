#pragma once

#include "otp/base/compiler.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace otp {

/// The address of a process: 16 bytes, plain data, safe to copy and to send.
///
/// A Pid is weak: holding one keeps nothing alive, and a message to a process that has ended is
/// dropped. It is never reused for another process (a slot whose generations are used up is
/// retired). The default Pid names nobody; sending to it is sending to a dead process.
///
/// OTP: pid(). Differs: pids of two Systems in one OS process may compare equal.
struct Pid {
  uint64_t node = 0;  ///< 0 = this node, else the index of one incarnation of another node
  uint64_t id = 0;    ///< slot in the low 32 bits, generation in the high 32 bits

  constexpr explicit operator bool() const { return id != 0; }
  constexpr uint32_t slot() const { return static_cast<uint32_t>(id); }
  constexpr uint32_t generation() const { return static_cast<uint32_t>(id >> 32); }
  friend constexpr auto operator<=>(const Pid&, const Pid&) = default;

  /// `<0.slot.generation>`, as in Erlang's shell.
  std::string to_string() const {
    return "<" + std::to_string(node) + "." + std::to_string(slot()) + "." +
           std::to_string(generation()) + ">";
  }
};

/// A value that is unique in its System: names a monitor, a request, a timer or an alias.
///
/// OTP: reference().
struct Reference {
  uint64_t node = 0;
  uint64_t id = 0;

  constexpr explicit operator bool() const { return id != 0; }
  friend constexpr auto operator<=>(const Reference&, const Reference&) = default;

  std::string to_string() const {
    return "#Ref<" + std::to_string(node) + "." + std::to_string(id) + ">";
  }
};

}  // namespace otp

template <>
struct std::hash<otp::Pid> {
  size_t operator()(const otp::Pid& pid) const noexcept {
    return static_cast<size_t>((pid.id ^ pid.node) * 0x9E3779B97F4A7C15ull);
  }
};

template <>
struct std::hash<otp::Reference> {
  size_t operator()(const otp::Reference& ref) const noexcept {
    return static_cast<size_t>((ref.id ^ ref.node) * 0x9E3779B97F4A7C15ull);
  }
};
