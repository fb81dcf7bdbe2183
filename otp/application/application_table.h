#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/application/control.h"

/// What is known of a program's applications: one table for each System, attached to it.
namespace otp::internal {

/// Threads: any, every function.
class ApplicationTable {
 public:
  using RunningApplication = application::RunningApplication;

  /// Takes: applications: in start order.
  explicit ApplicationTable(std::vector<Application> applications);

  /// Null: no such application. The pointer stays good.
  const Application* find(std::string_view name) const;
  /// What processes of an application carry as Process::group().
  uint32_t group_of(std::string_view name) const;
  const Application* of_group(uint32_t group) const;

  Result<void> load(const std::string& name);
  Result<void> unload(const std::string& name);
  std::vector<std::string> loaded() const;

  std::optional<Term> get_env(std::string_view application, std::string_view key) const;
  void set_env(std::string_view application, std::string_view key, Term value);
  bool unset_env(std::string_view application, std::string_view key);
  Result<void> set_env(std::vector<application::ApplicationEnv> all);

  void started(RunningApplication application);
  void ended(std::string_view name);
  std::vector<RunningApplication> running() const;
  bool is_running(std::string_view name) const;

 private:
  using Env = std::map<std::string, Term, std::less<>>;

  const std::vector<Application> applications_;
  mutable std::mutex mutex_;
  // guarded by mutex_:
  std::map<std::string, Env, std::less<>> envs_;
  std::vector<std::string> loaded_;
  std::vector<RunningApplication> running_;  // in start order
};

/// The table of the System that this thread works for; null: none was attached.
ApplicationTable* application_table();
ApplicationTable* application_table(System& system);

}  // namespace otp::internal
