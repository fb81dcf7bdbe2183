#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/application/application.h"

/// Applications of a running program: start and stop them, ask which there are, keep settings.
///
///     auto started = co_await otp::application::ensure_all_started("audit");
///     otp::application::set_env("audit", "level", 3);
///     co_await otp::application::stop("audit").or_exit();
///
/// All of it concerns the applications that the program's main lists. OTP: the module application.
///
/// Threads: inside a process.
namespace otp::application {

// ---- Start and stop

/// Starts one application whose needed ones run; returns when its tree is up and its start phases
/// have ended. Loads it first.
///
/// Errors: {not_started,Needed}; {already_started,Name}; {unknown_application,Name}.
///         {Reason,StartCall} when the start gave that reason, {bad_return,{StartCall,What}} when
///         it threw or gave nothing to supervise, StartCall being {Name,start,[normal,[]]}; nothing
///         of it runs then.
/// OTP:    application:start/1,2.
Async<Result<void>> start(std::string name, ApplicationType type = ApplicationType::temporary);

/// Starts it after all that it needs and that do not run yet.
///
/// Returns: those that were started, in that order; none when all ran already.
/// Errors:  {Name,Reason}: why that one did not start; those started before it are stopped.
Async<Result<std::vector<std::string>>> ensure_all_started(
    std::string name, ApplicationType type = ApplicationType::temporary);

/// Stops one application: prep_stop, its tree in reverse order, stop. Returns when it is gone. No
/// other is concerned, not even those that need it, and the program goes on.
/// Errors: {not_started,Name}.
Async<Result<void>> stop(std::string name);

// ---- Which there are

struct RunningApplication {
  std::string name;
  std::string version;
  Pid supervisor;  ///< the top one; nobody for an application without processes
};

/// Those that run, in the order in which they started. OTP: which_applications/0.
std::vector<RunningApplication> which();

/// The names of those whose environment is there. OTP: loaded_applications/0.
std::vector<std::string> loaded();

/// Gives an application its environment, fresh. Errors: {already_loaded,Name},
/// {unknown_application,Name}.
Result<void> load(const std::string& name);

/// Forgets the environment of one that does not run. Errors: {running,Name}, {not_loaded,Name}.
Result<void> unload(const std::string& name);

/// The application that the calling process belongs to: the one whose tree it is in, or in which
/// the process that spawned it was. OTP: get_application/0.
std::optional<std::string> get_application();

// ---- Environment: values that live from load to unload, whether the application runs or not

std::optional<Term> get_env(std::string_view application, std::string_view key);
Term get_env(std::string_view application, std::string_view key, Term otherwise);

/// The application need not be loaded; loading it makes its environment fresh.
void set_env(std::string_view application, std::string_view key, Term value);
/// False: there was none.
bool unset_env(std::string_view application, std::string_view key);

struct ApplicationEnv {
  std::string application;
  std::vector<std::pair<std::string, Term>> values;
};
/// All or nothing. Errors: {duplicate_application,Name}, {duplicate_key,{Name,Key}},
/// bad_application or {bad_key,Name} for an empty name or key. OTP: set_env/1.
Result<void> set_env(std::vector<ApplicationEnv> all);

// ---- For programs and tests without otp::run

/// Makes the applications known to a System, none of them loaded. Before its first process.
void attach(System& system, std::vector<Application> applications);

/// Starts the process that start() and stop() ask, linked to the caller, whose end it does not
/// outlive. Errors: {already_started,Pid}. REQUIRES: attach().
Async<Result<Pid>> start_controller();

}  // namespace otp::application
