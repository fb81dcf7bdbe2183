#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "otp/supervision/supervisor.h"

/// PartitionSupervisor: the same child several times, so that one process is no bottleneck. A key
/// says which of them to use; the same key always finds the same partition.
///
///     auto pool = (co_await otp::PartitionSupervisor<Cache>::start_link(
///         {.name = "caches", .child = [](uint32_t partition, std::string name) {
///            return otp::child<Cache>({}, {.shard = partition}, {.name = name}); }})).or_exit();
///     otp::Server<Cache> cache = pool.server(user_id);
///
/// A partition is registered as `<name>.<number>`, so what server() gives survives restarts. It is
/// a Supervisor (one_for_one) whose children have their numbers as ids. OTP: Elixir's
/// PartitionSupervisor.
namespace otp {

namespace internal {

/// A stable hash of the bytes: the same in every process, build and run.
constexpr uint64_t partition_hash(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ull;
  }
  return hash ^ (hash >> 32);
}

inline uint32_t default_partitions() { return self_process().system().core_count(); }

}  // namespace internal

/// How to start a PartitionSupervisor.
struct PartitionSpec {
  std::string name;  ///< of the partitions: `<name>.<number>`; the supervisor itself has this name
  /// The child of a partition, which must be registered under the given name. Its id is set to the
  /// number.
  std::function<ChildSpec(uint32_t partition, std::string name)> child;
  uint32_t partitions = 0;  ///< 0: one for each core of the System
  uint32_t intensity = 3;
  Duration period = kDefaultPeriod;
};

/// The partitions of a running PartitionSupervisor: plain data, may be sent.
template <class S>
class Partitions {
 public:
  Partitions() = default;
  Partitions(std::string name, uint32_t count) : name_(std::move(name)), count_(count) {}

  uint32_t count() const { return count_; }
  SupervisorRef supervisor() const { return Name<Supervisor>(name_); }
  /// REQUIRES: partition < count().
  Server<S> partition(uint32_t partition) const {
    return Name<S>(name_ + "." + std::to_string(partition));
  }

  /// The number for an integer key: its absolute value modulo count().
  template <std::integral Key>
  uint32_t number(Key key) const {
    uint64_t value = static_cast<uint64_t>(key);
    if (key < 0) value = 0 - value;  // of the most negative one too
    return static_cast<uint32_t>(value % count_);
  }
  /// The number for any other key, by a stable hash of its bytes.
  uint32_t number(std::string_view key) const {
    return static_cast<uint32_t>(internal::partition_hash(key) % count_);
  }
  uint32_t number(const Pid& key) const { return number(key.id >> 32 ^ key.id); }
  template <class Key>
  Server<S> server(const Key& key) const {
    return partition(number(key));
  }

 private:
  std::string name_;
  uint32_t count_ = 1;
};

template <class S>
class PartitionSupervisor {
 public:
  /// Errors: those of Supervisor::start_link.
  static Async<Result<Partitions<S>>> start_link(PartitionSpec spec) {
    const uint32_t count = spec.partitions != 0 ? spec.partitions : internal::default_partitions();
    StartOptions options{.name = spec.name};
    auto started = co_await Supervisor::start_link(supervisor_spec(spec, count), options);
    if (!started.ok()) co_return started.error();
    co_return Partitions<S>(spec.name, count);
  }
  /// As a child of a supervisor; its partitions are Partitions<S>(spec.name, spec.partitions).
  /// REQUIRES: spec.partitions != 0.
  static ChildSpec child_spec(std::string id, PartitionSpec spec) {
    ChildOptions options{.name = spec.name};
    return supervisor(std::move(id), supervisor_spec(spec, spec.partitions), std::move(options));
  }

 private:
  static SupervisorSpec supervisor_spec(const PartitionSpec& spec, uint32_t count) {
    SupervisorSpec all{.intensity = spec.intensity, .period = spec.period};
    for (uint32_t i = 0; i < count; ++i) {
      ChildSpec child = spec.child(i, spec.name + "." + std::to_string(i));
      child.id = std::to_string(i);
      all.children.push_back(std::move(child));
    }
    return all;
  }
};

}  // namespace otp

template <class S>
struct otp::Shareable<otp::Partitions<S>> : std::true_type {};
