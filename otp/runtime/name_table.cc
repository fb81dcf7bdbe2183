#include "otp/runtime/name_table.h"

#include "otp/runtime/system_impl.h"

namespace otp::internal {

NameTable::Outcome NameTable::add(std::string_view name, uint64_t id, uint64_t* holder) {
  std::lock_guard lock(mutex_);
  if (auto taken = by_name_.find(name); taken != by_name_.end()) {
    if (holder != nullptr) *holder = taken->second;
    return Outcome::name_taken;
  }
  if (!system_.is_alive(id)) return Outcome::not_alive;
  Atomic<uint64_t>& state = system_.slot_of(id).state;
  // acquire: another thread may have put the mark; acq_rel: the dying exchange must see ours (N1).
  uint64_t seen = state.load(acquire);
  do {
    if ((seen >> 32) != (id >> 32) || !(seen & kAlive)) return Outcome::not_alive;
    if (seen & kNamed) return Outcome::has_name;
  } while (!state.compare_exchange_weak(seen, seen | kNamed, acq_rel, acquire));
  by_name_.emplace(std::string(name), id);
  by_id_.emplace(id, std::string(name));
  return Outcome::registered;
}

bool NameTable::remove(std::string_view name) {
  std::shared_ptr<void> object;  // goes after the mutex: its end may be somebody's code
  std::lock_guard lock(mutex_);
  auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  uint64_t id = found->second;
  Atomic<uint64_t>& state = system_.slot_of(id).state;
  uint64_t seen = state.load(acquire);
  while ((seen >> 32) == (id >> 32) && (seen & kAlive)) {
    if (state.compare_exchange_weak(seen, seen & ~kNamed, acq_rel, acquire)) break;
  }
  object = withdraw(name);
  by_id_.erase(id);
  by_name_.erase(found);
  return true;
}

void NameTable::remove_process(uint64_t id) {
  std::shared_ptr<void> object;
  std::lock_guard lock(mutex_);
  auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  object = withdraw(found->second);
  by_name_.erase(found->second);
  by_id_.erase(found);
}

bool NameTable::publish(std::string_view name, uint64_t id, std::shared_ptr<void> object) {
  std::lock_guard lock(mutex_);
  auto found = by_name_.find(name);
  if (found == by_name_.end() || found->second != id) return false;
  objects_.insert_or_assign(std::string(name), std::move(object));
  return true;
}

std::shared_ptr<void> NameTable::published(std::string_view name) {
  std::lock_guard lock(mutex_);
  auto found = objects_.find(name);
  return found == objects_.end() ? nullptr : found->second;
}

std::shared_ptr<void> NameTable::withdraw(std::string_view name) {
  auto found = objects_.find(name);
  if (found == objects_.end()) return nullptr;
  std::shared_ptr<void> object = std::move(found->second);
  objects_.erase(found);
  return object;
}

uint64_t NameTable::whereis(std::string_view name) {
  std::lock_guard lock(mutex_);
  auto found = by_name_.find(name);
  return found == by_name_.end() ? 0 : found->second;
}

std::string NameTable::name_of(uint64_t id) {
  std::lock_guard lock(mutex_);
  auto found = by_id_.find(id);
  return found == by_id_.end() ? std::string() : found->second;
}

std::vector<std::pair<std::string, uint64_t>> NameTable::all() {
  std::lock_guard lock(mutex_);
  return {by_name_.begin(), by_name_.end()};
}

size_t NameTable::size() {
  std::lock_guard lock(mutex_);
  return by_name_.size();
}

}  // namespace otp::internal
