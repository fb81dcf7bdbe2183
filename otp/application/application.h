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
///     namespace bank {
///     otp::Application application() {
///       // In YAML a server has the name of its type.
///       return {.name = "bank", .servers = otp::servers<Ledger, Teller>()};
///     }
///     }  // namespace bank
///     int main(int argc, char** argv) { return otp::run({bank::application()}, argc, argv); }
///
/// OTP: application, *.app. Differs: the tree is described in YAML, or by `tree`.
namespace otp {

/// A server type that YAML may start: its description and how a child of it is made.
struct ServerEntry {
  config::ServerDecl decl;
  ChildSpec (*child)(const config::ChildDecl& decl);
};

/// How an application takes part in the program, and what its end means.
///   permanent  the program ends in order, with a non-zero status
///   transient  the same, but only for an abnormal end
///   temporary  it is reported, the others go on
///   load       known and with its environment, but not started
///   none       as if the program did not list it
/// A program whose applications have all ended ends with status 0. The stronger stand first.
/// OTP: application:restart_type(), and the modes of a mix release.
enum class ApplicationType : uint8_t { permanent, transient, temporary, load, none };

/// A settings struct and how it is known at run time; see settings_type.
struct SettingsType {
  config::RecordType record;
  uint64_t hash = 0;
};

/// What an application's own start gives: its top supervisor, and what its stop wants to know.
struct StartedApplication {
  Pid supervisor;
  Term state{};
};

/// One of the steps that follow when the tree is up. OTP: start_phases, Module:start_phase/3.
struct StartPhase {
  std::string name;
  std::function<Async<Result<void>>()> run;
};

/// Something that an operator may ask the running application: `bin/NAME rpc COMMAND [ARG]...`
/// prints what it returns. Runs in a process of its own.
struct ApplicationCommand {
  std::string name;
  std::function<Async<Result<std::string>>(std::vector<std::string> arguments)> run;
};

struct Application {
  std::string name;
  /// The types that `start:` may name; see otp::servers.
  std::vector<ServerEntry> servers{};
  /// Applications of the same program that must run before this one; it stops before they do.
  std::vector<std::string> applications{};
  /// Unset: the strongest of those that need it; permanent if none does.
  std::optional<ApplicationType> type{};
  /// The struct that the key `settings` fills; see otp::settings.
  std::optional<SettingsType> settings{};
  std::string version = "0.1.0";
  /// The tree of an application that has no configuration file. Asked anew at each start.
  std::function<SupervisorSpec()> tree{};
  /// Runs in a process once the tree is up; what it returns is printed on the start line, e.g. a
  /// URL. Only for the start of the program.
  std::function<Async<std::string>()> ready{};

  /// Starts the tree instead of Supervisor::start_link, linked to the calling process; `tree` is
  /// that of the configuration. OTP: Module:start/2.
  std::function<Async<Result<StartedApplication>>(SupervisorSpec tree)> start{};
  /// In order, once the tree is up; the first that fails takes it down again.
  std::vector<StartPhase> start_phases{};
  /// Before the tree is stopped, or after it ended by itself: state in, state for `stop` out.
  /// OTP: Module:prep_stop/1.
  std::function<Async<Term>(Term state)> prep_stop{};
  /// When the tree is gone. OTP: Module:stop/1.
  std::function<Async<void>(Term state)> stop{};
  /// At the end of the program: an application that takes longer to stop is killed, and the others
  /// go on stopping. OTP: kernel's shutdown_timeout, for each.
  Timeout shutdown = infinity;
  /// The environment at the start of the program; see get_env in control.h. OTP: env.
  std::vector<std::pair<std::string, Term>> env{};
  std::vector<ApplicationCommand> commands{};
};

/// All that a configuration says of a child besides its id and its arguments: name, restart,
/// shutdown, significant, mailbox, backoff, drop_expired. For a ServerEntry that makes its child by
/// itself:
///
///     otp::ChildSpec workers_child(const otp::config::ChildDecl& decl) {
///       return otp::dynamic_supervisor(decl.id, {}, otp::options_of(decl));
///     }
///
/// A child that is a supervisor can have no mailbox limit: with one its start is refused,
/// {{invalid_mailbox,supervisor},Id}.
ChildOptions options_of(const config::ChildDecl& decl);

namespace internal {

template <class S>
ChildSpec child_of_declaration(const config::ChildDecl& decl) {
  if constexpr (HasArgs<S>) {
    return child<S>(decl.id, decl.args_of<S>(), options_of(decl));
  } else {
    return child<S>(decl.id, {}, options_of(decl));
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

/// Fills in every `type`: what `modes` says of an application by its name (a release does), else
/// what the application says, else the strongest of those that need it.
///
/// Takes:  applications: in start order.
/// Errors: {unknown_application,Name}; {bad_mode,{Name,Mode,Needed,Mode}}: one that is to be
///         started needs one that is not, or one that is loaded needs one that is not.
Result<std::vector<Application>> with_modes(
    std::vector<Application> applications,
    const std::vector<std::pair<std::string, ApplicationType>>& modes);

}  // namespace otp
