// What a configuration file declares: plain structs that know neither YAML nor processes.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "otp/base/reflect.h"
#include "otp/config/describe.h"
#include "otp/config/position.h"
#include "otp/supervision/child_spec_types.h"

namespace otp::config {

// ---- What an application offers: the other half of a configuration.

/// A server type that a configuration may start.
struct ServerDecl {
  std::string name;                     ///< what `start` says
  std::string type = {};                ///< the class's qualified name: what references ask for
  std::optional<RecordType> args = {};  ///< none: the server takes no arguments
};

/// Describes the server type S, whose arguments are S::Args if there is such a struct.
///
/// Takes: name: how configurations call it; the type's own name unless two of them agree.
template <class S>
ServerDecl describe_server(std::string_view name = type_name<S>()) {
  ServerDecl server;
  server.name = name;
  server.type = qualified_type_name<S>();
  if constexpr (requires { typename S::Args; }) server.args = record_type<typename S::Args>();
  return server;
}

/// An application: its name, its server types, and the struct of its settings if it has one.
struct ApplicationDecl {
  std::string name;
  std::vector<ServerDecl> servers = {};
  std::optional<RecordType> settings = {};
};

// ---- What a configuration says.

struct SupervisorDecl;

/// One child of a supervisor, with every default filled in.
///
/// OTP: supervisor:child_spec(). `name`, `mailbox`, `backoff` and `drop_expired` are ours.
struct ChildDecl {
  std::string id;
  std::string start;                 ///< the server type; empty for a supervisor
  std::optional<std::string> name;   ///< the name it is registered by
  std::shared_ptr<const void> args;  ///< an S::Args on the heap; nullptr if S takes none
  Restart restart = Restart::permanent;
  Shutdown shutdown = kDefaultWorkerShutdown;  ///< infinity for a supervisor
  bool significant = false;
  std::optional<MailboxLimit> mailbox;
  std::optional<Backoff> backoff;
  bool drop_expired = false;
  std::shared_ptr<const SupervisorDecl> supervisor;  ///< set: the child is a supervisor
  Position position;

  /// The arguments of a child that runs S.
  template <class S>
  const typename S::Args& args_of() const {
    return *static_cast<const typename S::Args*>(args.get());
  }
};

/// A supervisor and its children, in the order in which they start.
///
/// OTP: supervisor:sup_flags(), with OTP's defaults: one restart in 5 s.
struct SupervisorDecl {
  Strategy strategy = kDefaultStrategy;
  uint32_t intensity = kDefaultIntensity;
  Duration period = kDefaultPeriod;
  AutoShutdown auto_shutdown = AutoShutdown::never;
  std::vector<ChildDecl> children;
  Position position;
};

/// A whole configuration file.
struct Configuration {
  std::string application;
  std::string run_dir = {};              ///< of the node; empty: the file does not say
  std::shared_ptr<const void> settings;  ///< the application's settings struct; nullptr without one
  SupervisorDecl supervisor;

  template <class Settings>
  const Settings& settings_as() const {
    return *static_cast<const Settings*>(settings.get());
  }
};

}  // namespace otp::config
