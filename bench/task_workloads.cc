// async_stream N CONCURRENCY (tiny jobs, ordered results) · async_await N (one at a time)

#include <cstdint>
#include <ranges>

#include "bench/workloads.h"
#include "otp/task/async_stream.h"
#include "otp/task/task.h"

namespace bench {

using namespace otp;

namespace {

int64_t same(int64_t number) { return number; }

Async<void> async_stream(int64_t n, int64_t concurrency) {
  int64_t start = wall(), sum = 0;
  auto results = Task::async_stream(std::views::iota(int64_t{1}, n + 1), same,
                                    {.max_concurrency = concurrency});
  while (auto result = co_await results.next()) sum += result->value();
  check(sum == n * (n + 1) / 2, "async_stream");
  report("async_stream", double(n), double(wall() - start));
}

Async<void> async_await(int64_t n) {
  int64_t start = wall(), sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    auto task = Task::async(same, i);
    sum += co_await task.await();
  }
  check(sum == n * (n - 1) / 2, "async_await");
  report("async_await", double(n), double(wall() - start));
}

}  // namespace

std::map<std::string, Workload> task_workloads() {
  return {
      {"async_stream", [](Numbers a) { return async_stream(a[0], a[1]); }},
      {"async_await", [](Numbers a) { return async_await(a[0]); }},
  };
}

}  // namespace bench
