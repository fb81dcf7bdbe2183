#include "otp/observe/metrics.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "otp/base/utf8.h"

namespace otp::observe {
namespace {

constexpr uint64_t kParts = 8;  // of a power of two
constexpr int kPartBits = 3;

// Powers of two of nanoseconds that are shown: 2^10 (1 us) to 2^36 (69 s); plain numbers from 1.
constexpr int kFirstShownDuration = 10;
constexpr int kLastShown = 36;

std::string valid_name(std::string_view name) {
  std::string valid(name.empty() ? "_" : name);
  for (size_t index = 0; index < valid.size(); ++index) {
    const char c = valid[index];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
    const bool digit = c >= '0' && c <= '9' && index > 0;
    if (!letter && !digit) valid[index] = '_';
  }
  return valid;
}

void append_escaped(std::string* out, std::string_view text, bool quotes) {
  std::string valid;
  append_valid_utf8(&valid, text);
  for (char letter : valid) {
    if (letter == '\\') {
      *out += "\\\\";
    } else if (letter == '\n') {
      *out += "\\n";
    } else if (letter == '"' && quotes) {
      *out += "\\\"";
    } else {
      *out += letter;
    }
  }
}

// `kind="sha",queue="x"`, sorted, so that the order in which they are given makes no difference.
std::string labels_text(MetricLabels labels) {
  std::sort(labels.begin(), labels.end());
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += ',';
    text += valid_name(name);
    text += "=\"";
    append_escaped(&text, value, true);
    text += '"';
  }
  return text;
}

void append_number(std::string* out, double value) {
  if (std::isnan(value)) {
    *out += "NaN";
  } else if (std::isinf(value)) {
    *out += value > 0 ? "+Inf" : "-Inf";
  } else {
    char digits[40];
    out->append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
}

void append_sample(std::string* out, const std::string& name, std::string_view suffix,
                   const std::string& labels, double value) {
  *out += name;
  *out += suffix;
  if (!labels.empty()) *out += '{' + labels + '}';
  *out += ' ';
  append_number(out, value);
  *out += '\n';
}

double shown(uint64_t value, Histogram::Unit unit) {
  const auto number = static_cast<double>(value);
  return unit == Histogram::Unit::nanoseconds ? number / 1e9 : number;
}

// Bounds are 2^n - 1 and inclusive, where a bucket ends exactly: no number is on the wrong side.
void append_histogram(std::string* out, const std::string& name, const std::string& labels,
                      const Histogram& histogram) {
  const Histogram::Snapshot snapshot = histogram.snapshot();
  const std::string separator = labels.empty() ? "" : ",";
  uint64_t below = 0;
  size_t bucket = 0;
  const int first = snapshot.unit == Histogram::Unit::nanoseconds ? kFirstShownDuration : 0;
  for (int power = first; power <= kLastShown; ++power) {
    const uint64_t bound = (uint64_t{1} << power) - 1;
    while (bucket < Histogram::kBuckets && Histogram::bucket_max(bucket) <= bound) {
      below += snapshot.buckets[bucket++];
    }
    std::string bound_labels = labels + separator + "le=\"";
    append_number(&bound_labels, shown(bound, snapshot.unit));
    append_sample(out, name, "_bucket", bound_labels + '"', static_cast<double>(below));
  }
  const auto count = static_cast<double>(snapshot.count);
  append_sample(out, name, "_bucket", labels + separator + "le=\"+Inf\"", count);
  append_sample(out, name, "_sum", labels, shown(snapshot.sum, snapshot.unit));
  append_sample(out, name, "_count", labels, count);
}

}  // namespace

size_t Counter::shard() noexcept {
  static std::atomic<size_t> threads{0};
  thread_local const size_t own = threads.fetch_add(1, std::memory_order_relaxed) % kShards;
  return own;
}

uint64_t Counter::value() const noexcept {
  uint64_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.value.load(std::memory_order_relaxed);
  return sum;
}

size_t Histogram::bucket_of(uint64_t value) noexcept {
  if (value < kParts) return value;
  const int power = std::bit_width(value) - 1;
  const uint64_t part = (value >> (power - kPartBits)) - kParts;
  return static_cast<size_t>(power - kPartBits + 1) * kParts + part;
}

uint64_t Histogram::bucket_max(size_t bucket) noexcept {
  if (bucket < kParts) return bucket;
  const size_t shift = bucket / kParts - 1;
  const uint64_t first = (kParts + bucket % kParts) << shift;
  return first + ((uint64_t{1} << shift) - 1);
}

void Histogram::observe(uint64_t value) noexcept {
  buckets_[bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  uint64_t max = max_.load(std::memory_order_relaxed);
  while (value > max && !max_.compare_exchange_weak(max, value, std::memory_order_relaxed))
    continue;
}

Histogram::Snapshot Histogram::snapshot() const noexcept {
  Snapshot snapshot;
  snapshot.unit = unit_;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    snapshot.buckets[bucket] = buckets_[bucket].load(std::memory_order_relaxed);
    snapshot.count += snapshot.buckets[bucket];
  }
  snapshot.sum = sum_.load(std::memory_order_relaxed);
  snapshot.max = max_.load(std::memory_order_relaxed);
  return snapshot;
}

uint64_t Histogram::Snapshot::quantile(double share) const noexcept {
  const double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += buckets[bucket];
    if (seen > 0 && static_cast<double>(seen) >= wanted) return std::min(bucket_max(bucket), max);
  }
  return max;
}

Metrics::Registration::~Registration() {
  if (metrics_ == nullptr) return;
  std::lock_guard lock(metrics_->mutex_);
  for (auto& [name, family] : metrics_->families_) {
    for (auto at = family.series.begin(); at != family.series.end();) {
      Series& series = at->second;
      const bool ours = series.id == id_;
      if (ours) series.read = nullptr;
      if (ours) series.id = 0;
      // Somebody may hold its counter or gauge: then the series stays.
      const bool unused = series.counter == nullptr && series.gauge == nullptr;
      at = ours && unused ? family.series.erase(at) : std::next(at);
    }
  }
}

Metrics::Series& Metrics::series(Kind kind, std::string_view name, std::string_view help,
                                 MetricLabels labels) {
  const std::string valid = valid_name(name);
  auto [at, made] = families_.try_emplace(valid, Family{kind, std::string(help), {}});
  Family& family = at->second;
  if (family.kind != kind) {
    throw std::logic_error("metric " + valid + ": the name is taken by a metric of another kind");
  }
  std::string text = labels_text(std::move(labels));
  if (!family.series.contains(text) && family.series.size() >= kSeriesMax) {
    text = labels_text({{"overflow", "true"}});
  }
  return family.series[text];
}

Counter& Metrics::counter(std::string_view name, std::string_view help, MetricLabels labels) {
  std::lock_guard lock(mutex_);
  Series& found = series(Kind::counter, name, help, std::move(labels));
  if (found.counter == nullptr) found.counter = std::make_unique<Counter>();
  return *found.counter;
}

Gauge& Metrics::gauge(std::string_view name, std::string_view help, MetricLabels labels) {
  std::lock_guard lock(mutex_);
  Series& found = series(Kind::gauge, name, help, std::move(labels));
  if (found.gauge == nullptr) found.gauge = std::make_unique<Gauge>();
  return *found.gauge;
}

Histogram& Metrics::histogram(std::string_view name, std::string_view help, MetricLabels labels,
                              Histogram::Unit unit) {
  std::lock_guard lock(mutex_);
  Series& found = series(Kind::histogram, name, help, std::move(labels));
  if (found.histogram == nullptr) found.histogram = std::make_unique<Histogram>(unit);
  return *found.histogram;
}

Metrics::Registration Metrics::callback(CallbackKind kind, std::string_view name,
                                        std::string_view help, MetricLabels labels,
                                        std::function<double()> read) {
  std::lock_guard lock(mutex_);
  const Kind family_kind = kind == CallbackKind::counter ? Kind::counter : Kind::gauge;
  Series& found = series(family_kind, name, help, std::move(labels));
  found.read = std::move(read);  // the newest counts when two give the same labels
  found.id = next_id_++;
  return Registration(this, found.id);
}

void Metrics::append_series(std::string* out, const std::string& name, const std::string& labels,
                            const Series& series) {
  if (series.histogram != nullptr) {
    append_histogram(out, name, labels, *series.histogram);
    return;
  }
  double value = 0;
  if (series.counter != nullptr) value += static_cast<double>(series.counter->value());
  if (series.gauge != nullptr) value += static_cast<double>(series.gauge->value());
  if (series.read) value += series.read();
  append_sample(out, name, "", labels, value);
}

std::string Metrics::prometheus_text() const {
  constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram"};
  std::string out;
  std::lock_guard lock(mutex_);
  for (const auto& [name, family] : families_) {
    if (family.series.empty()) continue;
    out += "# HELP " + name + ' ';
    append_escaped(&out, family.help, false);
    out += "\n# TYPE " + name + ' ';
    out += kKinds[static_cast<size_t>(family.kind)];
    out += '\n';
    for (const auto& [labels, series] : family.series) append_series(&out, name, labels, series);
  }
  return out;
}

}  // namespace otp::observe
