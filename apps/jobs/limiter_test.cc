#include "apps/jobs/limiter.h"

#include <catch2/catch.hpp>
#include <random>

namespace jobs {
namespace {

using Words = std::vector<std::string>;

using std::chrono::milliseconds;
using std::chrono::seconds;

Kinds one_kind(KindSettings settings) {
  settings.command = Words{"true"};
  return {{"k", settings}};
}

std::vector<JobId> ids(const std::vector<Limiter::Start>& starts) {
  std::vector<JobId> list;
  for (const auto& start : starts) list.push_back(start.id);
  return list;
}

void fill(Limiter& limiter, JobId first, JobId last, Moment due = Moment(0)) {
  for (JobId id = first; id <= last; ++id) limiter.put_back("k", id, due);
}

}  // namespace

TEST_CASE("no more than max_concurrency jobs of a kind run, oldest first", "[jobs][limiter]") {
  Limiter limiter(one_kind({.max_concurrency = 2}));
  for (const JobId id : {3, 1, 2}) limiter.put_back("k", id, Moment(0));
  CHECK(ids(limiter.take_ready(Moment(0))) == std::vector<JobId>{1, 2});
  CHECK(limiter.running("k") == 2);
  CHECK(limiter.waiting("k") == 1);
  CHECK(limiter.take_ready(Moment(0)).empty());
  CHECK(!limiter.next_ready(Moment(0)));  // only an end helps
  limiter.ended("k");
  CHECK(limiter.next_ready(Moment(5)) == Moment(5));
  CHECK(ids(limiter.take_ready(Moment(5))) == std::vector<JobId>{3});
}

TEST_CASE("no second has more starts than the rate, wherever it begins", "[jobs][limiter]") {
  constexpr size_t kRate = 5;
  Limiter limiter(one_kind({.max_concurrency = 1000, .rate = kRate}));
  std::mt19937 random(7);
  std::vector<Moment> starts;
  JobId next_id = 1;
  for (Moment now(0); now < seconds(20); now += milliseconds(random() % 40)) {
    if (random() % 4 == 0) limiter.put_back("k", next_id++, now);
    for (const auto& start : limiter.take_ready(now)) {
      starts.push_back(now);
      limiter.ended(start.kind);
    }
  }
  REQUIRE(starts.size() > 80);
  for (size_t i = kRate; i < starts.size(); ++i) CHECK(starts[i] - starts[i - kRate] >= seconds(1));
}

TEST_CASE("the rate is used up fully and the next start is announced", "[jobs][limiter]") {
  Limiter limiter(one_kind({.max_concurrency = 100, .rate = 3}));
  fill(limiter, 1, 10);
  CHECK(limiter.take_ready(Moment(100)).size() == 3);
  CHECK(limiter.next_ready(Moment(200)) == Moment(1100));
  CHECK(limiter.take_ready(Moment(1099)).empty());
  CHECK(limiter.take_ready(Moment(1100)).size() == 3);
  CHECK(limiter.take_ready(Moment(5000)).size() == 3);  // a pause earns no more
}

TEST_CASE("a rate below one is one start in its reciprocal", "[jobs][limiter]") {
  CHECK(StartWindow::of(0.2).starts == 1);
  CHECK(StartWindow::of(0.2).length == seconds(5));
  CHECK(StartWindow::of(0.3).length == milliseconds(3334));
  CHECK(StartWindow::of({}).starts == 0);
  Limiter limiter(one_kind({.max_concurrency = 5, .rate = 0.2}));
  fill(limiter, 1, 2);
  CHECK(limiter.take_ready(Moment(0)).size() == 1);
  CHECK(limiter.next_ready(Moment(1)) == Moment(5000));
}

TEST_CASE("a restart does not allow more starts than the rate does", "[jobs][limiter]") {
  Limiter limiter(one_kind({.max_concurrency = 100, .rate = 3}));
  for (const int at : {100, 900, 950, 990}) limiter.restore_start("k", Moment(at));
  limiter.restore_start("gone", Moment(1));
  fill(limiter, 1, 10);
  CHECK(limiter.take_ready(Moment(1000)).empty());
  CHECK(limiter.next_ready(Moment(1000)) == Moment(1900));
  CHECK(limiter.take_ready(Moment(1900)).size() == 1);
  CHECK(limiter.take_ready(Moment(1950)).size() == 1);
}

TEST_CASE("a full queue refuses and says when to come again", "[jobs][limiter]") {
  Limiter limiter(one_kind({.rate = 0.1, .max_queued = 2}));
  CHECK(!limiter.admit("k", Moment(0)));
  CHECK(!limiter.admit("k", Moment(0)));  // admitted, not stored yet: counts
  CHECK(limiter.admit("k", Moment(0))->why == Limiter::Refusal::queue_full);
  limiter.withdraw("k");
  CHECK(!limiter.admit("k", Moment(0)));
  limiter.enqueue("k", 1, Moment(0));
  limiter.enqueue("k", 2, Moment(0));
  CHECK(limiter.waiting("k") == 2);
  CHECK(limiter.take_ready(Moment(0)).size() == 1);
  CHECK(!limiter.admit("k", Moment(0)));
  const auto refused = limiter.admit("k", Moment(2500));
  REQUIRE(refused);
  CHECK(refused->retry_after == seconds(8));  // the next start is at 10 s
  CHECK(limiter.admit("nope", Moment(0))->why == Limiter::Refusal::unknown_kind);
}

TEST_CASE("retries wait until they are due and do not count against the queue's limit",
          "[jobs][limiter]") {
  Limiter limiter(one_kind({.max_concurrency = 10, .max_queued = 1}));
  limiter.put_back("k", 1, Moment(3000));
  limiter.put_back("k", 2, Moment(0));
  CHECK(ids(limiter.take_ready(Moment(10))) == std::vector<JobId>{2});
  CHECK(limiter.next_ready(Moment(10)) == Moment(3000));
  CHECK(ids(limiter.take_ready(Moment(3000))) == std::vector<JobId>{1});
}

TEST_CASE("a waiting job can be taken out", "[jobs][limiter]") {
  Limiter limiter(one_kind({}));
  fill(limiter, 1, 2);
  limiter.put_back("k", 3, Moment(9000));
  CHECK(ids(limiter.take_ready(Moment(0))) == std::vector<JobId>{1});
  CHECK(limiter.remove("k", 2));
  CHECK(limiter.remove("k", 3));
  CHECK(!limiter.remove("k", 1));
  CHECK(!limiter.remove("nope", 1));
  CHECK(limiter.waiting("k") == 0);
}

TEST_CASE("kinds take turns", "[jobs][limiter]") {
  Kinds kinds;
  for (const char* name : {"a", "b", "c"})
    kinds[name] = {.command = Words{"true"}, .max_concurrency = 2};
  Limiter limiter(kinds);
  for (JobId id = 0; id < 9; ++id) limiter.put_back(std::string(1, "abc"[id % 3]), id, Moment(0));
  std::string order;
  for (const auto& start : limiter.take_ready(Moment(0))) order += start.kind;
  CHECK(order == "abcabc");
}

TEST_CASE("the wait before a retry grows to its maximum and retries run out", "[jobs][limiter]") {
  KindSettings settings{.command = Words{"true"}, .retries = 200};
  settings.backoff = {.min = milliseconds(100), .max = seconds(1), .factor = 3};
  const auto wait = [&](int failures) {
    return *retry_at(settings, failures, Moment(5000)) - Moment(5000);
  };
  CHECK(wait(1) == milliseconds(100));
  CHECK(wait(2) == milliseconds(300));
  CHECK(wait(3) == milliseconds(900));
  CHECK(wait(4) == seconds(1));
  CHECK(wait(200) == seconds(1));
  CHECK(!retry_at(settings, 201, Moment(0)));
  CHECK(!retry_at({.command = Words{"true"}}, 1, Moment(0)));
}

TEST_CASE("settings that make no sense are named with what was expected", "[jobs][settings]") {
  const auto field = [](KindSettings settings) {
    if (!settings.command.given()) settings.command = Words{"true"};
    const auto problem = settings.problem();
    return problem ? std::string(problem->field) : std::string();
  };
  CHECK(field({}).empty());
  CHECK(field({.command = Words()}) == "command");
  CHECK(field({.command = Words{""}}) == "command");
  CHECK(field({.environment = {{"A=B", "c"}}}) == "environment");
  CHECK(field({.directory = "relative"}) == "directory");
  CHECK(field({.max_concurrency = 0}) == "max_concurrency");
  CHECK(field({.rate = 2.5}) == "rate");
  CHECK(field({.rate = 0.0}) == "rate");
  CHECK(field({.rate = -1}) == "rate");
  CHECK(field({.rate = 1.0 / 3600}).empty());
  CHECK(field({.max_queued = 0}) == "max_queued");
  CHECK(field({.timeout = milliseconds(0)}) == "timeout");
  CHECK(field({.retries = 1001}) == "retries");
  CHECK(field({.backoff = {.min = seconds(2), .max = seconds(1)}}) == "backoff");
  CHECK(field({.max_output = otp::gibibytes(1)}) == "max_output");
}

TEST_CASE("R-035 commands inherit few variables and never the token", "[jobs][settings]") {
  const KindSettings settings{.command = Words{"true"}, .environment = {{"A", "1"}, {"LANG", "C"}}};
  const auto inherited = [](const char* name) -> const char* {
    const std::map<std::string, const char*> service = {
        {"JOBS_TOKEN", "secret"}, {"PATH", "/bin"}, {"LANG", "de"}, {"HOME", ""}};
    const auto found = service.find(name);
    return found == service.end() ? nullptr : found->second;
  };
  CHECK(command_environment(settings, inherited) ==
        std::vector<std::string>{"A=1", "LANG=C", "PATH=/bin"});
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  CHECK(command_environment({.command = Words{"true"}}, nothing) ==
        std::vector<std::string>{"PATH=/usr/local/bin:/usr/bin:/bin"});
}

TEST_CASE("a job interrupted too often is not run again", "[jobs][settings]") {
  CHECK(runs_again({}, 1));
  CHECK(!runs_again({}, kInterruptionsMax));
  CHECK(!runs_again({.on_interrupt = OnInterrupt::fail}, 1));
}

}  // namespace jobs
