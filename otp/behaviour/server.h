#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "otp/base/pid.h"
#include "otp/base/reflect.h"
#include "otp/base/shareable.h"
#include "otp/base/term.h"
#include "otp/runtime/runtime.h"

namespace otp {

namespace internal {

/// One server type: a stable name and a hash, one object each; letters compare its address.
struct ServerType {
  std::string_view name;
  uint64_t hash;
};
template <class S>
inline const ServerType server_type{type_name<S>(), stable_hash<S>};

/// A name that a registry keeps, not the System. Its methods run in the process that asks.
class ViaTarget : public TermObject {
 public:
  /// The process that has the name; the default Pid: none that lives.
  virtual Pid whereis() const = 0;
  /// Gives the name to the calling process. The default Pid: done; else who has it.
  virtual Pid add_self() const = 0;
};

}  // namespace internal

/// A name in a registry; made by otp::Registry's via(). Usable as the name of a server that is
/// started (StartOptions::via) and as an address (Server<S>). OTP: {via, Module, Name}.
class ViaName {
 public:
  explicit ViaName(std::shared_ptr<const internal::ViaTarget> target)
      : target_(std::move(target)) {}
  std::string to_string() const { return target_->to_string(); }
  const std::shared_ptr<const internal::ViaTarget>& target() const { return target_; }

 private:
  std::shared_ptr<const internal::ViaTarget> target_;
};

/// The name of a server of type S: looked up at each use, so it survives restarts. What a
/// long-lived holder keeps. In YAML an Args field of this type is written as the child's name.
template <class S>
class Name {
 public:
  using ServerClass = S;
  Name() = default;
  explicit Name(std::string name) : name_(Term::atom(std::move(name))) {}
  std::string_view text() const { return name_.text(); }
  friend bool operator==(const Name&, const Name&) = default;

 private:
  template <class>
  friend class Server;
  Term name_;  // an atom: copied without an allocation
};

/// The one address type of servers: a pid, a local name, or a name in a registry. Made from a Pid,
/// a Name<S>, a ViaName, or the result of a start. S says which messages may be sent; the compiler
/// checks each.
///
/// A Server made from a pid dies with its process; one made from a name finds the next one.
/// Copying is cheap; it may be sent to other processes.
template <class S>
class Server {
 public:
  using ServerClass = S;
  Server() = default;
  explicit Server(Pid pid) : pid_(pid) {}
  Server(const Name<S>& name) : name_(name.name_) {}
  explicit Server(const ViaName& via) : name_(std::shared_ptr<const TermObject>(via.target())) {}

  /// The pid now: of a name the one that has it, the default Pid if nobody has.
  /// Threads: from inside a process (for names).
  Pid pid() const {
    if (name_.kind() == Term::Kind::none) return pid_;
    internal::LibraryScope scope(internal::env());
    if (name_.kind() == Term::Kind::object) {
      return static_cast<const internal::ViaTarget*>(name_.object())->whereis();
    }
    return internal::whereis_or_nobody(name_.text());
  }
  /// Empty unless this is made from a local name.
  std::string_view name() const { return name_.text(); }
  std::string to_string() const {
    return name_.kind() == Term::Kind::none ? pid_.to_string() : name_.to_string();
  }
  friend bool operator==(const Server&, const Server&) = default;

 private:
  Pid pid_;
  Term name_;  // none: made from a pid
};

}  // namespace otp

template <>
struct otp::Shareable<otp::ViaName> : std::true_type {};
template <class S>
struct otp::Shareable<otp::Name<S>> : std::true_type {};
template <class S>
struct otp::Shareable<otp::Server<S>> : std::true_type {};
