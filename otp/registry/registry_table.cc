#include "otp/registry/registry_table.h"

#include <stdexcept>

#include "otp/runtime/runtime.h"

namespace otp::internal {

std::optional<Term> RegistryTableBase::meta(std::string_view key) {
  std::lock_guard lock(meta_mutex_);
  for (auto& [its_key, value] : meta_) {
    if (its_key == key) return value;
  }
  return std::nullopt;
}

void RegistryTableBase::put_meta(std::string key, Term value) {
  std::lock_guard lock(meta_mutex_);
  for (auto& [its_key, its_value] : meta_) {
    if (its_key != key) continue;
    its_value = std::move(value);
    return;
  }
  meta_.emplace_back(std::move(key), std::move(value));
}

void RegistryTableBase::delete_meta(std::string_view key) {
  std::lock_guard lock(meta_mutex_);
  std::erase_if(meta_, [key](const auto& each) { return each.first == key; });
}

std::shared_ptr<RegistryTableBase> find_registry(std::string_view name, const void* type) {
  auto table = std::static_pointer_cast<RegistryTableBase>(env().system->names().published(name));
  if (table == nullptr || table->type != type) {
    throw std::invalid_argument("unknown registry: " + std::string(name) +
                                (table == nullptr ? "" : " has keys or values of other types"));
  }
  return table;
}

std::string name_of_self() { return env().system->names().name_of(self_process().id()); }

void publish_registry(const std::shared_ptr<RegistryTableBase>& table) {
  if (!env().system->names().publish(table->name, self_process().id(), table)) {
    throw Exit(ExitReason::tagged("badarg", Term("a registry needs a name")));
  }
}

void join_registry(const RegistryTableBase& table) { self_process().link(table.server); }

void leave_registry(const RegistryTableBase& table) {
  // Its parent is linked for another reason.
  if (self_process().pid() != table.parent) self_process().unlink(table.server);
}

bool process_lives(uint64_t id) { return env().system->is_alive(id); }

Pid parent_of_self() { return Pid{0, self_process().parent()}; }

}  // namespace otp::internal
