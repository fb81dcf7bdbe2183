#include "otp/application/application_table.h"

#include <algorithm>
#include <memory>
#include <set>

namespace otp {

namespace internal {

namespace {

constexpr uint64_t kTableKey = 0x6170'706c'5f74'6162;  // as unlike as the hashes of settings types

ExitReason unknown(std::string_view name) {
  return ExitReason::tagged("unknown_application", Term::atom(std::string(name)));
}

// What is wrong with a bulk set: nothing may be set then.
std::optional<ExitReason> bad_entry(const std::vector<application::ApplicationEnv>& all) {
  std::set<std::string_view> names;
  for (const auto& [name, values] : all) {
    if (name.empty()) return ExitReason::atom("bad_application");
    if (!names.insert(name).second) {
      return ExitReason::tagged("duplicate_application", Term::atom(name));
    }
    std::set<std::string_view> keys;
    for (const auto& [key, value] : values) {
      if (key.empty()) return ExitReason::tagged("bad_key", Term::atom(name));
      if (keys.insert(key).second) continue;
      return ExitReason::tagged("duplicate_key", Term::tuple({Term::atom(name), Term::atom(key)}));
    }
  }
  return std::nullopt;
}

}  // namespace

ApplicationTable::ApplicationTable(std::vector<Application> applications)
    : applications_(std::move(applications)) {}

const Application* ApplicationTable::find(std::string_view name) const {
  return of_group(group_of(name));
}

uint32_t ApplicationTable::group_of(std::string_view name) const {
  for (size_t i = 0; i < applications_.size(); ++i) {
    if (applications_[i].name == name) return static_cast<uint32_t>(i + 1);
  }
  return 0;
}

const Application* ApplicationTable::of_group(uint32_t group) const {
  return group == 0 || group > applications_.size() ? nullptr : &applications_[group - 1];
}

Result<void> ApplicationTable::load(const std::string& name) {
  const Application* application = find(name);
  if (application == nullptr) return unknown(name);
  std::lock_guard lock(mutex_);
  if (std::find(loaded_.begin(), loaded_.end(), name) != loaded_.end()) {
    return ExitReason::tagged("already_loaded", Term::atom(name));
  }
  loaded_.push_back(name);
  envs_[name] = Env(application->env.begin(), application->env.end());
  return {};
}

Result<void> ApplicationTable::unload(const std::string& name) {
  if (is_running(name)) return ExitReason::tagged("running", Term::atom(name));
  std::lock_guard lock(mutex_);
  auto found = std::find(loaded_.begin(), loaded_.end(), name);
  if (found == loaded_.end()) return ExitReason::tagged("not_loaded", Term::atom(name));
  loaded_.erase(found);
  envs_.erase(name);
  return {};
}

std::vector<std::string> ApplicationTable::loaded() const {
  std::lock_guard lock(mutex_);
  return loaded_;
}

std::optional<Term> ApplicationTable::get_env(std::string_view application,
                                              std::string_view key) const {
  std::lock_guard lock(mutex_);
  auto env = envs_.find(application);
  if (env == envs_.end()) return std::nullopt;
  auto value = env->second.find(key);
  if (value == env->second.end()) return std::nullopt;
  return value->second;
}

void ApplicationTable::set_env(std::string_view application, std::string_view key, Term value) {
  std::lock_guard lock(mutex_);
  envs_[std::string(application)].insert_or_assign(std::string(key), std::move(value));
}

bool ApplicationTable::unset_env(std::string_view application, std::string_view key) {
  std::lock_guard lock(mutex_);
  auto env = envs_.find(application);
  if (env == envs_.end()) return false;
  auto value = env->second.find(key);
  if (value == env->second.end()) return false;
  env->second.erase(value);
  return true;
}

Result<void> ApplicationTable::set_env(std::vector<application::ApplicationEnv> all) {
  if (auto wrong = bad_entry(all)) return *wrong;
  std::lock_guard lock(mutex_);
  for (auto& [name, values] : all) {
    for (auto& [key, value] : values) envs_[name].insert_or_assign(key, std::move(value));
  }
  return {};
}

void ApplicationTable::started(RunningApplication application) {
  std::lock_guard lock(mutex_);
  running_.push_back(std::move(application));
}

void ApplicationTable::ended(std::string_view name) {
  std::lock_guard lock(mutex_);
  std::erase_if(running_, [name](const RunningApplication& one) { return one.name == name; });
}

std::vector<application::RunningApplication> ApplicationTable::running() const {
  std::lock_guard lock(mutex_);
  return running_;
}

bool ApplicationTable::is_running(std::string_view name) const {
  std::lock_guard lock(mutex_);
  return std::any_of(running_.begin(), running_.end(),
                     [name](const RunningApplication& one) { return one.name == name; });
}

ApplicationTable* application_table() {
  // Attached as const, as settings are; the table guards itself.
  return static_cast<ApplicationTable*>(const_cast<void*>(env().system->attachment(kTableKey)));
}

ApplicationTable* application_table(System& system) {
  return static_cast<ApplicationTable*>(const_cast<void*>(system.impl().attachment(kTableKey)));
}

}  // namespace internal

namespace application {

namespace {
internal::ApplicationTable* table() {
  internal::LibraryScope scope(internal::env());
  return internal::application_table();
}
}  // namespace

void attach(System& system, std::vector<Application> applications) {
  auto made = std::make_shared<internal::ApplicationTable>(std::move(applications));
  system.impl().attach(internal::kTableKey, std::shared_ptr<const void>(std::move(made)));
}

std::vector<RunningApplication> which() {
  return table() == nullptr ? std::vector<RunningApplication>() : table()->running();
}

std::vector<std::string> loaded() {
  return table() == nullptr ? std::vector<std::string>() : table()->loaded();
}

Result<void> load(const std::string& name) {
  return table() == nullptr ? Result<void>(internal::unknown(name)) : table()->load(name);
}

Result<void> unload(const std::string& name) {
  return table() == nullptr ? Result<void>(internal::unknown(name)) : table()->unload(name);
}

std::optional<std::string> get_application() {
  internal::LibraryScope scope(internal::env());
  internal::ApplicationTable* known = internal::application_table();
  if (known == nullptr) return std::nullopt;
  const Application* found = known->of_group(internal::self_process().group());
  return found == nullptr ? std::nullopt : std::optional(found->name);
}

std::optional<Term> get_env(std::string_view application, std::string_view key) {
  return table() == nullptr ? std::nullopt : table()->get_env(application, key);
}

Term get_env(std::string_view application, std::string_view key, Term otherwise) {
  auto value = get_env(application, key);
  return value ? *std::move(value) : otherwise;
}

void set_env(std::string_view application, std::string_view key, Term value) {
  if (table() != nullptr) table()->set_env(application, key, std::move(value));
}

bool unset_env(std::string_view application, std::string_view key) {
  return table() != nullptr && table()->unset_env(application, key);
}

Result<void> set_env(std::vector<ApplicationEnv> all) {
  if (table() == nullptr) return ExitReason::noproc();
  return table()->set_env(std::move(all));
}

}  // namespace application

}  // namespace otp
