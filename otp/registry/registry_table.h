#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "otp/base/atomic.h"
#include "otp/base/pid.h"
#include "otp/base/term.h"

/// The tables behind a Registry: read and written by whoever uses it, without asking its process.
namespace otp {

/// Whether a key has one owner or any number of entries.
enum class Keys : uint8_t { unique, duplicate };

namespace internal {

/// What does not depend on the types of keys and values.
///
/// Threads: any process. The members are constant but for the metadata, which their mutex guards.
class RegistryTableBase {
 public:
  RegistryTableBase(const void* type, std::string name, Keys keys)
      : type(type), name(std::move(name)), keys(keys) {}
  virtual ~RegistryTableBase() = default;

  const void* const type;  // the Registry's server type: one name, one type of keys and values
  const std::string name;
  const Keys keys;
  Pid server;
  Pid parent;
  std::vector<std::string> listeners;

  std::optional<Term> meta(std::string_view key);
  void put_meta(std::string key, Term value);
  void delete_meta(std::string_view key);

 private:
  std::mutex meta_mutex_;
  std::vector<std::pair<std::string, Term>> meta_;  // guarded by meta_mutex_
};

/// The table that the process `name` has published.
/// Errors: std::invalid_argument when there is none of this type.
std::shared_ptr<RegistryTableBase> find_registry(std::string_view name, const void* type);
/// Publishes the calling process's table under the name that it has; throws Exit badarg without.
void publish_registry(const std::shared_ptr<RegistryTableBase>& table);
/// The calling process's name; empty: it has none.
std::string name_of_self();
/// The calling process shares the fate of the registry's, which sees its end.
void join_registry(const RegistryTableBase& table);
/// The calling process has no entry any more.
void leave_registry(const RegistryTableBase& table);
bool process_lives(uint64_t id);
Pid parent_of_self();

/// Entries by key and keys by process, in partitions with a mutex each.
///
/// Invariant (T1): a key stands once in by_process[p] for each entry of p under it, in the same
/// partition. An entry's process may be dead, until the registry's process has seen that: whoever
/// reads leaves such entries out.
///
/// Threads: any process. No code of keys' or values' owners but their copies, moves, hashes and
/// comparisons runs under a mutex.
template <class K, class V>
class RegistryTable final : public RegistryTableBase {
 public:
  struct Entry {
    uint64_t process;
    V value;
  };
  struct Partition {
    std::mutex mutex;
    std::unordered_map<K, std::vector<Entry>> by_key;         // guarded by mutex
    std::unordered_map<uint64_t, std::vector<K>> by_process;  // guarded by mutex
  };

  RegistryTable(const void* type, std::string name, Keys keys, uint32_t partitions)
      : RegistryTableBase(type, std::move(name), keys),
        partitions_(partitions < 1 ? 1 : partitions) {}

  /// The default Pid: done. Else the process that has the unique key.
  Pid add(uint64_t process, const K& key, V value) {
    Partition& partition = partition_of(key, process);
    std::lock_guard lock(partition.mutex);
    std::vector<Entry>& entries = partition.by_key[key];
    if (keys == Keys::unique && !entries.empty()) {
      if (process_lives(entries.front().process)) return Pid{0, entries.front().process};
      forget_key(partition, entries.front().process, key);
      entries.clear();
    }
    entries.push_back({process, std::move(value)});
    partition.by_process[process].push_back(key);
    return {};
  }

  /// Removes the entries of `process` under `key` for which wanted(value) is true; whether there
  /// were some.
  template <class Wanted>
  bool remove(uint64_t process, const K& key, Wanted wanted) {
    Partition& partition = partition_of(key, process);
    std::lock_guard lock(partition.mutex);
    auto found = partition.by_key.find(key);
    if (found == partition.by_key.end()) return false;
    const size_t removed = std::erase_if(found->second, [&](const Entry& each) {
      return each.process == process && wanted(each.value);
    });
    if (found->second.empty()) partition.by_key.erase(found);
    for (size_t i = 0; i < removed; ++i) forget_key(partition, process, key);
    return removed > 0;
  }

  /// Removes everything of a process; the keys that it had.
  std::vector<K> remove_process(uint64_t process) {
    std::vector<K> gone;
    for (Partition& partition : partitions_) {
      std::lock_guard lock(partition.mutex);
      auto found = partition.by_process.find(process);
      if (found == partition.by_process.end()) continue;
      for (const K& key : found->second) {
        auto entries = partition.by_key.find(key);
        if (entries == partition.by_key.end()) continue;
        std::erase_if(entries->second,
                      [process](const Entry& each) { return each.process == process; });
        if (entries->second.empty()) partition.by_key.erase(entries);
      }
      gone.insert(gone.end(), std::make_move_iterator(found->second.begin()),
                  std::make_move_iterator(found->second.end()));
      partition.by_process.erase(found);
    }
    return gone;
  }

  /// Calls f(key, entry) for each entry of a living process, one partition after the other, with
  /// its mutex held.
  template <class F>
  void for_each(F f) {
    for (Partition& partition : partitions_) {
      std::lock_guard lock(partition.mutex);
      for (auto& [key, entries] : partition.by_key) {
        for (Entry& each : entries) {
          if (process_lives(each.process)) f(key, each);
        }
      }
    }
  }
  /// The same for the entries under one key; f(partition, entry).
  template <class F>
  void for_key(const K& key, F f) {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      if (keys == Keys::unique && i != index_of(std::hash<K>()(key))) continue;
      std::lock_guard lock(partitions_[i].mutex);
      auto found = partitions_[i].by_key.find(key);
      if (found == partitions_[i].by_key.end()) continue;
      for (Entry& each : found->second) {
        if (process_lives(each.process)) f(i, each);
      }
    }
  }
  std::vector<K> keys_of(uint64_t process) {
    std::vector<K> all;
    if (!process_lives(process)) return all;
    for (Partition& partition : partitions_) {
      std::lock_guard lock(partition.mutex);
      auto found = partition.by_process.find(process);
      if (found != partition.by_process.end()) {
        all.insert(all.end(), found->second.begin(), found->second.end());
      }
    }
    return all;
  }
  bool has_entries(uint64_t process) {
    for (Partition& partition : partitions_) {
      std::lock_guard lock(partition.mutex);
      if (partition.by_process.contains(process)) return true;
    }
    return false;
  }
  /// Entries that are stored, those of dead processes among them: for tests of leaks.
  size_t stored() {
    size_t count = 0;
    for (Partition& partition : partitions_) {
      std::lock_guard lock(partition.mutex);
      for (auto& [key, entries] : partition.by_key) count += entries.size();
      count += partition.by_process.size();
    }
    return count;
  }

 private:
  // As in Elixir: the entries of a unique key lie together, those of a duplicate one with their
  // process.
  Partition& partition_of(const K& key, uint64_t process) {
    return partitions_[index_of(keys == Keys::unique ? std::hash<K>()(key)
                                                     : std::hash<Pid>()(Pid{0, process}))];
  }
  size_t index_of(size_t hash) const {
    return static_cast<size_t>((static_cast<uint64_t>(hash) * 0x9E3779B97F4A7C15ull) >> 32) %
           partitions_.size();
  }
  static void forget_key(Partition& partition, uint64_t process, const K& key) {
    auto found = partition.by_process.find(process);
    if (found == partition.by_process.end()) return;
    auto one = std::find(found->second.begin(), found->second.end(), key);
    if (one != found->second.end()) found->second.erase(one);
    if (found->second.empty()) partition.by_process.erase(found);
  }

  std::vector<Partition> partitions_;
};

}  // namespace internal
}  // namespace otp
