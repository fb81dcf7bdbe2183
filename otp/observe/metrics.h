#pragma once

/// Counters, gauges and histograms, and their text form for Prometheus.
///
///   Metrics metrics;
///   Counter& jobs = metrics.counter("jobs_finished_total", "Jobs that ended", {{"kind", "sha"}});
///   Histogram& time = metrics.histogram("job_seconds", "Time from start to end");
///   jobs.add();
///   time.observe(elapsed);
///   std::string page = metrics.prometheus_text();
///
/// Ask for a series once and keep the reference: it lives as long as the Metrics. Adding costs
/// nanoseconds and no lock; looking a series up takes a lock.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace otp::observe {

/// Counts up. Threads: any.
class Counter {
 public:
  void add(uint64_t amount = 1) noexcept {
    // relaxed: a number on its own, nothing is published by it. So all below.
    shards_[shard()].value.fetch_add(amount, std::memory_order_relaxed);
  }
  uint64_t value() const noexcept;

 private:
  static constexpr size_t kShards = 8;  // threads that add at once rarely share a cache line
  struct alignas(64) Shard {
    std::atomic<uint64_t> value{0};
  };
  static size_t shard() noexcept;

  std::array<Shard, kShards> shards_;
};

/// Goes up and down. Threads: any.
class Gauge {
 public:
  void set(int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(int64_t amount) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

/// Counts whole numbers by size: every power of two is divided into eight equal parts, so a
/// quantile is right within 12.5 %. 4 KB each. Threads: any.
class Histogram {
 public:
  static constexpr size_t kBuckets = 496;

  /// What the numbers are: durations are kept in nanoseconds and shown in seconds.
  enum class Unit { nanoseconds, none };
  explicit Histogram(Unit unit = Unit::nanoseconds) : unit_(unit) {}

  void observe(uint64_t value) noexcept;
  void observe(std::chrono::nanoseconds duration) noexcept {
    observe(static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0)));
  }

  struct Snapshot {
    Unit unit = Unit::none;
    uint64_t count = 0;
    uint64_t sum = 0;
    uint64_t max = 0;
    std::array<uint64_t, kBuckets> buckets{};

    /// The largest number of the bucket in which that share of the numbers is reached, but no more
    /// than `max`; 0 when empty. Takes: share: 0 to 1.
    uint64_t quantile(double share) const noexcept;
  };
  /// Numbers that are being added meanwhile may be in or not.
  Snapshot snapshot() const noexcept;

  static size_t bucket_of(uint64_t value) noexcept;
  /// The largest number that falls into the bucket.
  static uint64_t bucket_max(size_t bucket) noexcept;

 private:
  const Unit unit_;
  std::array<std::atomic<uint64_t>, kBuckets> buckets_{};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> max_{0};
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// A set of series. An application has one and passes it on; there is no global one.
class Metrics {
 public:
  /// Of one name. Further label values all share one series, labelled {overflow="true"}.
  static constexpr size_t kSeriesMax = 1000;

  /// Ends a callback() when destroyed; after that it is not being called any more.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept
        : metrics_(std::exchange(other.metrics_, nullptr)), id_(other.id_) {}
    Registration& operator=(Registration&& other) noexcept {
      std::swap(metrics_, other.metrics_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Registration();

   private:
    friend class Metrics;
    Registration(Metrics* metrics, uint64_t id) : metrics_(metrics), id_(id) {}
    Metrics* metrics_ = nullptr;
    uint64_t id_ = 0;
  };
  enum class CallbackKind { counter, gauge };

  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The series of that name and labels, made when it is not there.
  ///
  /// Letters that Prometheus does not allow in names become underscores. `help` counts the first
  /// time. Throws std::logic_error when the name is taken by another kind.
  Counter& counter(std::string_view name, std::string_view help, MetricLabels labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, MetricLabels labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, MetricLabels labels = {},
                       Histogram::Unit unit = Histogram::Unit::nanoseconds);

  /// A value that is asked for when somebody looks. It must not use this Metrics, nor throw.
  [[nodiscard]] Registration callback(CallbackKind kind, std::string_view name,
                                      std::string_view help, MetricLabels labels,
                                      std::function<double()> read);

  /// Text format 0.0.4 (`text/plain; version=0.0.4`): families and series in order of their names,
  /// the same bytes in every locale.
  std::string prometheus_text() const;

 private:
  enum class Kind { counter, gauge, histogram };
  struct Series {
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
    std::function<double()> read;
    uint64_t id = 0;  // of a callback
  };
  struct Family {
    Kind kind;
    std::string help;
    std::map<std::string, Series> series;  // by the labels as they are written
  };

  Series& series(Kind kind, std::string_view name, std::string_view help, MetricLabels labels);
  static void append_series(std::string* out, const std::string& name, const std::string& labels,
                            const Series& series);

  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;  // guarded by mutex_
  uint64_t next_id_ = 1;                    // guarded by mutex_
};

}  // namespace otp::observe
