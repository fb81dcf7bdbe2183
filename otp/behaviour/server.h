#pragma once

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

}  // namespace internal

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

/// The one address type of servers: a pid, or a local name. Made from a Pid, a Name<S>, or the
/// result of a start. S says which messages may be sent; the compiler checks each.
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

  /// The pid now: of a name the one that has it, the default Pid if nobody has.
  /// Threads: from inside a process (for names).
  Pid pid() const {
    if (name_.kind() == Term::Kind::none) return pid_;
    internal::LibraryScope scope(internal::env());
    return internal::whereis_or_nobody(name_.text());
  }
  /// Empty when this is made from a pid.
  std::string_view name() const { return name_.text(); }
  std::string to_string() const { return name().empty() ? pid_.to_string() : std::string(name()); }
  friend bool operator==(const Server&, const Server&) = default;

 private:
  Pid pid_;
  Term name_;  // none: made from a pid
};

}  // namespace otp

template <class S>
struct otp::Shareable<otp::Name<S>> : std::true_type {};
template <class S>
struct otp::Shareable<otp::Server<S>> : std::true_type {};
