#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "otp/base/bounded_writer.h"
#include "otp/base/format_value.h"
#include "otp/base/result.h"
#include "otp/base/shareable.h"
#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/server.h"
#include "otp/registry/registry_table.h"

/// Registry: processes by key. A name service whose names are values of your own type, and a list
/// of who wants to hear of something.
///
///     using Players = otp::Registry<std::string>;                      // one owner a key
///     const otp::Name<Players> players("players");
///
///     // In the tree, before those that use it; it is found by its name.
///     otp::child<Players>("players", {}, {.name = "players"})
///
///     // As names: the server registers as it starts, and is called by the same name.
///     auto ann = Players::via(players, "ann");
///     co_await otp::start_link<Player>({}, {.via = ann});
///     co_await otp::call(otp::Server<Player>(ann), Greet{});
///
///     // To tell many: keys are duplicate, each process registers itself.
///     using Rooms = otp::Registry<std::string, int>;
///     Rooms::register_key(rooms, "lobby", 7);
///     Rooms::dispatch(rooms, "lobby", [](const std::vector<Rooms::Entry>& entries) {
///       for (const Rooms::Entry& each : entries) otp::send(each.pid, Hello{});
///     });
///
/// A process registers itself, never another. Its entries go when it ends: from then on nobody is
/// given its pid. Whoever has an entry is linked to the registry, so both end together when that
/// crashes. Reading and registering ask no process and never wait.
///
/// Not for a handful of fixed servers: those have a plain name. OTP: Elixir's Registry. Differs:
/// keys and values have types; keys compare with operator== (so there are no patterns, and 1 is not
/// 1.0); match and select take a function.
///
/// Threads: inside a process. Errors: std::invalid_argument when no registry of this type has the
/// name.
namespace otp {

template <class Key, class Value = std::monostate>
class Registry {
 public:
  struct Args {
    Keys keys = Keys::unique;
    /// How many parts the tables have, each with its own lock: more, when many register at once.
    uint32_t partitions = 1;
    /// Names of processes that get Registered and Unregistered; one that is not there is left out.
    std::vector<std::string> listeners{};
  };
  using Ref = Name<Registry>;

  struct Entry {
    Pid pid;
    Value value;
  };
  struct Record {
    Key key;
    Pid pid;
    Value value;
  };
  /// To listeners. OTP: {register, Registry, Key, Pid, Value}.
  struct Registered {
    std::string registry;
    Key key;
    Pid pid;
    Value value;
  };
  /// To listeners. OTP: {unregister, Registry, Key, Pid}.
  struct Unregistered {
    std::string registry;
    Key key;
    Pid pid;
  };

  static auto start_link(std::string name, Args args = {}) {
    return otp::start_link<Registry>(std::move(args), {.name = std::move(name)});
  }

  /// Gives the calling process an entry.
  /// Errors: {already_registered,Pid} if a living process has the unique key, this one too.
  /// OTP: Registry.register/3.
  static Result<void> register_key(const Ref& registry, Key key, Value value = {}) {
    internal::LibraryScope scope(internal::env());
    return add(*table_of(registry.text()), key, std::move(value));
  }
  /// Takes away the calling process's entries under `key`, if there are any.
  /// OTP: Registry.unregister/2.
  static void unregister(const Ref& registry, const Key& key) {
    unregister_match(registry, key, [](const Value&) { return true; });
  }
  /// Only those for whose value `wanted` is true. OTP: Registry.unregister_match/4.
  template <class F>
  static void unregister_match(const Ref& registry, const Key& key, F wanted) {
    internal::LibraryScope scope(internal::env());
    auto table = table_of(registry.text());
    const Pid self = internal::self_process().pid();
    if (!table->remove(self.id, key, wanted)) return;
    tell(*table, Unregistered{table->name, key, self});
    if (!table->has_entries(self.id)) internal::leave_registry(*table);
  }

  /// The entries under `key`, in the order in which each partition got them.
  /// OTP: Registry.lookup/2.
  static std::vector<Entry> lookup(const Ref& registry, const Key& key) {
    return match(registry, key, [](const Value&) { return true; });
  }
  /// The process that has the unique key. OTP: Registry.whereis_name/1.
  static std::optional<Pid> whereis(const Ref& registry, const Key& key) {
    auto entries = lookup(registry, key);
    if (entries.empty()) return std::nullopt;
    return entries.front().pid;
  }
  /// Those for whose value `wanted` is true. OTP: Registry.match/4.
  template <class F>
  static std::vector<Entry> match(const Ref& registry, const Key& key, F wanted) {
    internal::LibraryScope scope(internal::env());
    std::vector<Entry> entries;
    table_of(registry.text())->for_key(key, [&](size_t, const Stored& each) {
      entries.push_back({Pid{0, each.process}, each.value});
    });
    std::erase_if(entries, [&](const Entry& each) { return !wanted(each.value); });
    return entries;
  }
  template <class F>
  static size_t count_match(const Ref& registry, const Key& key, F wanted) {
    return match(registry, key, std::move(wanted)).size();
  }
  /// Calls `f(const std::vector<Entry>&)` once for each partition that has entries under `key`; not
  /// at all when nobody has. OTP: Registry.dispatch/4.
  template <class F>
  static void dispatch(const Ref& registry, const Key& key, F f) {
    std::vector<std::pair<size_t, Entry>> found;
    {
      internal::LibraryScope scope(internal::env());
      table_of(registry.text())->for_key(key, [&](size_t partition, const Stored& each) {
        found.emplace_back(partition, Entry{Pid{0, each.process}, each.value});
      });
    }
    std::vector<Entry> entries;
    for (size_t i = 0; i < found.size(); ++i) {
      entries.push_back(std::move(found[i].second));
      if (i + 1 < found.size() && found[i + 1].first == found[i].first) continue;
      f(std::as_const(entries));
      entries.clear();
    }
  }
  /// Everything for which `wanted(key, pid, value)` is true. OTP: Registry.select/2.
  template <class F>
  static std::vector<Record> select(const Ref& registry, F wanted) {
    internal::LibraryScope scope(internal::env());
    std::vector<Record> records;
    table_of(registry.text())->for_each([&](const Key& key, const Stored& each) {
      records.push_back({key, Pid{0, each.process}, each.value});
    });
    std::erase_if(records,
                  [&](const Record& each) { return !wanted(each.key, each.pid, each.value); });
    return records;
  }
  /// OTP: Registry.count/1.
  static size_t count(const Ref& registry) {
    internal::LibraryScope scope(internal::env());
    size_t entries = 0;
    table_of(registry.text())->for_each([&](const Key&, const Stored&) { ++entries; });
    return entries;
  }

  /// The keys of a process, one for each entry. OTP: Registry.keys/2.
  static std::vector<Key> keys(const Ref& registry, Pid pid) {
    internal::LibraryScope scope(internal::env());
    return table_of(registry.text())->keys_of(pid.id);
  }
  /// The values of a process under `key`. OTP: Registry.values/3.
  static std::vector<Value> values(const Ref& registry, const Key& key, Pid pid) {
    std::vector<Value> all;
    for (Entry& each : lookup(registry, key)) {
      if (each.pid == pid) all.push_back(std::move(each.value));
    }
    return all;
  }
  /// Changes the calling process's value under a unique key: the new and the old one, or nullopt
  /// when this process has not the key. OTP: Registry.update_value/3.
  template <class F>
  static std::optional<std::pair<Value, Value>> update_value(const Ref& registry, const Key& key,
                                                             F change) {
    const Pid self = otp::self();
    auto table = unique_table(registry.text());
    auto mine = values(registry, key, self);
    if (mine.empty()) return std::nullopt;
    Value fresh =
        change(std::as_const(mine.front()));  // only this process could change it meanwhile
    internal::LibraryScope scope(internal::env());
    table->for_key(key, [&](size_t, Stored& each) {
      if (each.process == self.id) each.value = fresh;
    });
    return std::pair<Value, Value>(std::move(fresh), std::move(mine.front()));
  }

  /// Entries and processes that the tables hold, the dead among them: for tests of leaks.
  static size_t stored(const Ref& registry) {
    internal::LibraryScope scope(internal::env());
    return table_of(registry.text())->stored();
  }

  /// What the registry as a whole remembers. OTP: Registry.put_meta/3, meta/2, delete_meta/2.
  static void put_meta(const Ref& registry, std::string key, Term value) {
    internal::LibraryScope scope(internal::env());
    table_of(registry.text())->put_meta(std::move(key), std::move(value));
  }
  static std::optional<Term> meta(const Ref& registry, std::string_view key) {
    internal::LibraryScope scope(internal::env());
    return table_of(registry.text())->meta(key);
  }
  static void delete_meta(const Ref& registry, std::string_view key) {
    internal::LibraryScope scope(internal::env());
    table_of(registry.text())->delete_meta(key);
  }

  /// `key` as the name of a server: for StartOptions::via, and in otp::Server<S>(via) as its
  /// address, looked up at each use. `value` is what the server registers with.
  /// Errors: its use throws std::invalid_argument when keys are duplicate.
  /// OTP: {via, Registry, {Registry, Key, Value}}.
  static ViaName via(const Ref& registry, Key key, Value value = {}) {
    return ViaName(std::make_shared<const Via>(registry, std::move(key), std::move(value)));
  }

  // Callbacks.
  explicit Registry(Args args) {
    static_assert(is_shareable<Key> && is_shareable<Value>,
                  "keys and values of a registry are copied to other processes: see shareable.h");
    trap_exit(true);
    internal::LibraryScope scope(internal::env());
    table_ = std::make_shared<Table>(&internal::server_type<Registry>, internal::name_of_self(),
                                     args.keys, args.partitions);
    table_->server = internal::self_process().pid();
    table_->parent = internal::parent_of_self();
    table_->listeners = std::move(args.listeners);
    internal::publish_registry(table_);
  }
  void handle_info(ExitMessage message) {
    internal::LibraryScope scope(internal::env());
    for (Key& key : table_->remove_process(message.from.id)) {
      tell(*table_, Unregistered{table_->name, std::move(key), message.from});
    }
  }

 private:
  using Table = internal::RegistryTable<Key, Value>;
  using Stored = typename Table::Entry;

  static std::shared_ptr<Table> table_of(std::string_view name) {
    return std::static_pointer_cast<Table>(
        internal::find_registry(name, &internal::server_type<Registry>));
  }
  static std::shared_ptr<Table> unique_table(std::string_view name) {
    internal::LibraryScope scope(internal::env());
    auto table = table_of(name);
    if (table->keys != Keys::unique) {
      throw std::invalid_argument("registry " + std::string(name) +
                                  ": names and update_value want unique keys, its keys are "
                                  "duplicate");
    }
    return table;
  }
  static Result<void> add(Table& table, const Key& key, Value value) {
    const Pid self = internal::self_process().pid();
    std::optional<Value> told;
    if (!table.listeners.empty()) told = value;
    if (Pid holder = table.add(self.id, key, std::move(value))) {
      return ExitReason::tagged("already_registered", Term(holder));
    }
    internal::join_registry(table);
    if (told) tell(table, Registered{table.name, key, self, std::move(*told)});
    return {};
  }
  template <class M>
  static void tell(const Table& table, const M& message) {
    for (const std::string& each : table.listeners) {
      if (Pid listener = internal::whereis_or_nobody(each)) send(listener, M(message));
    }
  }

  class Via final : public internal::ViaTarget {
   public:
    Via(Ref registry, Key key, Value value)
        : registry_(std::move(registry)), key_(std::move(key)), value_(std::move(value)) {}
    Pid whereis() const override {
      (void)unique_table(registry_.text());
      return Registry::whereis(registry_, key_).value_or(Pid{});
    }
    Pid add_self() const override {
      auto table = unique_table(registry_.text());
      internal::LibraryScope scope(internal::env());
      auto added = add(*table, key_, value_);
      return added.ok() ? Pid{} : added.error().term().items()[1].pid();
    }
    std::string to_string() const override {
      BoundedWriter text(200);
      text.write("{via,Registry,{").write(registry_.text()).write(",");
      format_value(text, key_);
      return text.take() + "}}";
    }
    bool equals(const TermObject& other) const override {
      auto* same = dynamic_cast<const Via*>(&other);
      return same != nullptr && same->registry_ == registry_ && same->key_ == key_;
    }

   private:
    const Ref registry_;
    const Key key_;
    const Value value_;
  };

  std::shared_ptr<Table> table_;
};

}  // namespace otp
