#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "otp/async/async.h"
#include "otp/behaviour/gen_server.h"
#include "otp/config/declarations.h"
#include "otp/supervision/child_spec.h"

/// Applications: what a program is made of. A main lists them and runs them:
///
///     otp::Application application() {
///       return {.name = "bank", .servers = otp::servers<Ledger, Teller>()};   // YAML name = type
///       name
///     }
///     int main(int argc, char** argv) { return otp::run({bank::application()}, argc, argv); }
///
/// OTP: application, *.app. Differs: the tree is described in YAML, or by `tree`.
namespace otp {

/// A server type that YAML may start: its description and how a child of it is made.
struct ServerEntry {
  config::ServerDecl decl;
  ChildSpec (*child)(const config::ChildDecl& decl);
};

/// What the end of an application means for the program.
///   permanent  the program ends in order, with a non-zero status
///   transient  the same, but only for an abnormal end
///   temporary  it is reported, the others go on
/// A program whose applications have all ended ends with status 0. OTP: application:restart_type().
enum class ApplicationType { permanent, transient, temporary };

/// A settings struct and how it is known at run time; see settings_type.
struct SettingsType {
  config::RecordType record;
  uint64_t hash = 0;
};

struct Application {
  std::string name;
  /// The types that `start:` may name; see otp::servers.
  std::vector<ServerEntry> servers{};
  /// Applications of the same program that must run before this one; it stops before they do.
  std::vector<std::string> applications{};
  ApplicationType type = ApplicationType::permanent;
  /// The struct that the key `settings` fills; see otp::settings.
  std::optional<SettingsType> settings{};
  std::string version = "0.1.0";
  /// The tree of an application that has no configuration file.
  std::function<SupervisorSpec()> tree{};
  /// Runs in a process once the tree is up; what it returns is printed on the start line, e.g. a
  /// URL.
  std::function<Async<std::string>()> ready{};
};

namespace internal {

template <class S>
ChildSpec child_of_declaration(const config::ChildDecl& decl) {
  ChildOptions options;
  options.name = decl.name.value_or("");
  options.restart = decl.restart;
  options.shutdown = decl.shutdown;
  options.significant = decl.significant;
  if (decl.mailbox) options.mailbox = *decl.mailbox;
  if (decl.backoff) options.backoff = *decl.backoff;
  options.drop_expired = decl.drop_expired;
  if constexpr (HasArgs<S>) {
    return child<S>(decl.id, decl.args_of<S>(), std::move(options));
  } else {
    return child<S>(decl.id, {}, std::move(options));
  }
}

}  // namespace internal

/// The list of server types of an application; each is known in YAML by its type's name.
template <class... S>
std::vector<ServerEntry> servers() {
  return {ServerEntry{config::describe_server<S>(), &internal::child_of_declaration<S>}...};
}

/// Names the struct that an application's `settings` fill: `.settings =
/// otp::settings_type<Settings>()`.
template <class T>
SettingsType settings_type() {
  return {config::record_type<T>(), stable_hash<T>};
}

/// The settings of type T that the program was started with; they do not change while it runs.
///
/// Threads: inside a process. Errors: throws Exit {no_settings,T} when no application has such
/// settings.
template <class T>
const T& settings() {
  const void* found = internal::env().system->attachment(stable_hash<T>);
  if (found == nullptr) {
    throw Exit(ExitReason::tagged("no_settings", Term::atom(std::string(type_name<T>()))));
  }
  return *static_cast<const T*>(found);
}

/// Turns what a configuration declares into what a supervisor starts.
///
/// REQUIRES: `decl` comes from config::check() with the same servers.
SupervisorSpec supervisor_spec(const config::SupervisorDecl& decl,
                               const std::vector<ServerEntry>& servers);

/// The applications in an order in which each comes after those that it needs.
/// Errors: {unknown_application,Name}, {dependency_cycle,Name}, {duplicate_application,Name}.
Result<std::vector<Application>> start_order(std::vector<Application> applications);

}  // namespace otp
