#include "otp/observe/metrics.h"

#include <catch2/catch.hpp>
#include <limits>
#include <locale>
#include <thread>

#include "otp/base/utf8.h"

using namespace otp::observe;
using namespace std::chrono_literals;

TEST_CASE("counters and gauges are written with their help, type and labels", "[metrics]") {
  Metrics metrics;
  metrics.counter("jobs_total", "Jobs that ended", {{"kind", "sha"}, {"a", "1"}}).add(3);
  metrics.counter("jobs_total", "ignored", {{"a", "1"}, {"kind", "sha"}}).add();
  metrics.counter("jobs_total", "", {{"kind", "echo"}});
  metrics.gauge("depth", "Queue\nlength \\ now").set(-5);
  CHECK(metrics.prometheus_text() ==
        "# HELP depth Queue\\nlength \\\\ now\n"
        "# TYPE depth gauge\n"
        "depth -5\n"
        "# HELP jobs_total Jobs that ended\n"
        "# TYPE jobs_total counter\n"
        "jobs_total{a=\"1\",kind=\"sha\"} 4\n"
        "jobs_total{kind=\"echo\"} 0\n");
}

TEST_CASE("R-033 names and label values of any bytes are made valid", "[metrics]") {
  Metrics metrics;
  metrics.counter("9 jobs-total", "h", {{"k-1", "a\"b\\c\nd\xff"}}).add();
  CHECK(metrics.prometheus_text() ==
        "# HELP __jobs_total h\n# TYPE __jobs_total counter\n"
        "__jobs_total{k_1=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 1\n");
}

TEST_CASE("a name has one kind", "[metrics]") {
  Metrics metrics;
  metrics.counter("x", "");
  CHECK_THROWS_AS(metrics.gauge("x", ""), std::logic_error);
}

TEST_CASE("too many label values share one series", "[metrics]") {
  Metrics metrics;
  for (size_t index = 0; index < Metrics::kSeriesMax + 50; ++index) {
    metrics.counter("x", "", {{"user", std::to_string(index)}}).add();
  }
  CHECK_THAT(metrics.prometheus_text(), Catch::Contains("x{overflow=\"true\"} 50\n"));
}

TEST_CASE("every number falls into a bucket that ends at most an eighth above it", "[metrics]") {
  std::vector<uint64_t> numbers{0, 1, std::numeric_limits<uint64_t>::max()};
  for (int power = 1; power < 64; ++power) {
    for (int64_t near : {-1, 0, 1}) numbers.push_back((uint64_t{1} << power) + near);
    numbers.push_back((uint64_t{1} << power) + (uint64_t{1} << power) / 3);
  }
  for (uint64_t number : numbers) {
    const size_t bucket = Histogram::bucket_of(number);
    REQUIRE(bucket < Histogram::kBuckets);
    CHECK(number <= Histogram::bucket_max(bucket));
    CHECK(Histogram::bucket_max(bucket) - number <= number / 8);
    if (bucket > 0) CHECK(number > Histogram::bucket_max(bucket - 1));
  }
  CHECK(Histogram::bucket_max(Histogram::kBuckets - 1) == std::numeric_limits<uint64_t>::max());
}

TEST_CASE("quantiles are right within an eighth", "[metrics]") {
  Histogram histogram;
  CHECK(histogram.snapshot().quantile(0.5) == 0);
  for (uint64_t value = 1; value <= 10'000; ++value) histogram.observe(value);
  const auto snapshot = histogram.snapshot();
  CHECK(snapshot.count == 10'000);
  CHECK(snapshot.sum == 10'000u * 10'001 / 2);
  CHECK(snapshot.max == 10'000);
  for (double share : {0.1, 0.5, 0.9, 0.99}) {
    const auto quantile = static_cast<double>(snapshot.quantile(share));
    CHECK(quantile >= share * 10'000);
    CHECK(quantile <= share * 10'000 * 1.125 + 1);
  }
  CHECK(snapshot.quantile(1) == 10'000);
  CHECK(snapshot.quantile(0) == 1);
}

TEST_CASE("a histogram is written with inclusive cumulative bounds in seconds", "[metrics]") {
  Metrics metrics;
  Histogram& histogram = metrics.histogram("time_seconds", "Time", {{"k", "v"}});
  histogram.observe(1023ns);
  histogram.observe(1024ns);
  histogram.observe(100s);
  histogram.observe(-1ns);
  const std::string text = metrics.prometheus_text();
  CHECK_THAT(text, Catch::Contains("# TYPE time_seconds histogram\n"));
  CHECK_THAT(text, Catch::Contains("time_seconds_bucket{k=\"v\",le=\"1.023e-06\"} 2\n"));
  CHECK_THAT(text, Catch::Contains("time_seconds_bucket{k=\"v\",le=\"2.047e-06\"} 3\n"));
  CHECK_THAT(text, Catch::Contains("time_seconds_bucket{k=\"v\",le=\"68.719476735\"} 3\n"));
  CHECK_THAT(text, Catch::Contains("time_seconds_bucket{k=\"v\",le=\"+Inf\"} 4\n"));
  CHECK_THAT(text, Catch::Contains("time_seconds_sum{k=\"v\"} 100.000002047\n"));
  CHECK_THAT(text, Catch::Contains("time_seconds_count{k=\"v\"} 4\n"));
  metrics.histogram("sizes", "", {}, Histogram::Unit::none).observe(uint64_t{3});
  CHECK_THAT(metrics.prometheus_text(), Catch::Contains("sizes_bucket{le=\"3\"} 1\n"));
}

TEST_CASE("a callback is asked when somebody looks, until it is taken back", "[metrics]") {
  Metrics metrics;
  int asked = 0;
  {
    auto registration = metrics.callback(Metrics::CallbackKind::gauge, "live", "", {}, [&] {
      ++asked;
      return 2.5;
    });
    CHECK_THAT(metrics.prometheus_text(), Catch::Contains("live 2.5\n"));
    auto moved = std::move(registration);
    CHECK_THAT(metrics.prometheus_text(), Catch::Contains("live 2.5\n"));
  }
  CHECK(metrics.prometheus_text().empty());
  CHECK(asked == 2);
  Gauge& gauge = metrics.gauge("both", "");
  {
    auto added = metrics.callback(Metrics::CallbackKind::gauge, "both", "", {}, [] { return 1; });
  }
  gauge.set(7);
  CHECK_THAT(metrics.prometheus_text(), Catch::Contains("both 7\n"));
}

TEST_CASE("many threads count at once", "[metrics][thread]") {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      Counter& counter = metrics.counter("x", "");
      Histogram& histogram = metrics.histogram("h", "");
      for (uint64_t index = 0; index < 10'000; ++index) {
        counter.add();
        histogram.observe(index);
        if (index % 5'000 == 0) metrics.prometheus_text();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(metrics.counter("x", "").value() == 40'000);
  CHECK(metrics.histogram("h", "").snapshot().count == 40'000);
  CHECK(metrics.histogram("h", "").snapshot().max == 9'999);
}

TEST_CASE("R-039 the global locale changes no byte of the metrics", "[metrics]") {
  class Grouping : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  Metrics metrics;
  metrics.counter("x", "").add(1'234'567);
  metrics.histogram("h", "").observe(1234567ns);
  const std::string text = metrics.prometheus_text();
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string then = metrics.prometheus_text();
  std::locale::global(before);
  CHECK(then == text);
  CHECK_THAT(text, Catch::Contains("x 1234567\n"));
}
