#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace otp::internal {

class SystemImpl;

/// Local names: at most one name a process, at most one process a name.
///
/// Invariant (N1): an entry's process has kNamed set in its slot's state; the mark is set under the
/// mutex by compare-and-swap on a living state, and the dying process, whose exchange of the state
/// shows the mark, removes the entry before it announces its end. So a name is free before its DOWN
/// arrives.
///
/// Threads: any.
class NameTable {
 public:
  explicit NameTable(SystemImpl& system) : system_(system) {}

  enum class Outcome : uint8_t { registered, name_taken, has_name, not_alive };
  /// On name_taken `*holder` is the process that has it.
  Outcome add(std::string_view name, uint64_t id, uint64_t* holder = nullptr);
  bool remove(std::string_view name);
  void remove_process(uint64_t id);
  /// The pid id, or 0.
  uint64_t whereis(std::string_view name);
  /// Empty: it has no name.
  std::string name_of(uint64_t id);
  size_t size();
  std::vector<std::pair<std::string, uint64_t>> all();

  /// Whoever has a name may publish an object under it, which is found as long as he has it: how a
  /// process offers tables that others read without asking it. False: `id` has not this name.
  bool publish(std::string_view name, uint64_t id, std::shared_ptr<void> object);
  /// Null: nobody has the name, or nothing is published under it.
  std::shared_ptr<void> published(std::string_view name);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <class V>
  using ByName = std::unordered_map<std::string, V, Hash, std::equal_to<>>;
  std::shared_ptr<void> withdraw(std::string_view name);

  SystemImpl& system_;
  std::mutex mutex_;
  ByName<uint64_t> by_name_;                         // guarded by mutex_
  std::unordered_map<uint64_t, std::string> by_id_;  // guarded by mutex_
  ByName<std::shared_ptr<void>> objects_;            // guarded by mutex_
};

}  // namespace otp::internal
