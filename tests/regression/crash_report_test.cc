// what the report of a crash costs. Sizes of memory, so not under the sanitizers.

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/base/log.h"
#include "otp/base/report.h"
#include "otp/base/secret.h"
#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/sys.h"
#include "otp/supervision/supervisor.h"
#include "tests/support/proc_status.h"

using namespace otp;
using namespace std::chrono_literals;
using otp::testing::proc_status;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t kServers = 10;
constexpr size_t kStateLines = 20'000;     // of 1000 bytes
constexpr int kLetters = 20'000;           // of 1 KiB, waiting for each server
constexpr size_t kLastMessage = 10 << 20;  // bytes
constexpr long kRiseMaxKb = 20 << 10;
constexpr std::chrono::milliseconds kRestartMax = 100ms;

struct Bulk {
  using Reply = void;
  std::string content{};
  Secret key{"open sesame"};
};
struct Line {
  std::string text;
};
struct Ready {
  using Reply = bool;
};

std::array<Clock::time_point, kServers> thrown_at, back_at;
std::array<std::atomic<int>, kServers> starts;

/// Large when it is first started, and empty after its restart.
class Huge {
 public:
  struct Args {
    size_t number = 0;
  };
  struct State {
    std::vector<std::string> lines{};
    Secret key{"open sesame"};
  };
  State state_;
  explicit Huge(Args args) : number_(args.number) {
    if (starts[number_].fetch_add(1) == 0) {
      state_.lines.assign(kStateLines, std::string(1000, 'x'));
    } else {
      back_at[number_] = Clock::now();
    }
  }
  void handle_call(Bulk) {
    thrown_at[number_] = Clock::now();
    throw std::runtime_error("too much");
  }
  bool handle_call(Ready) { return starts[number_] == 2; }
  void handle_info(Line) {}

 private:
  const size_t number_;
};

/// Looks at the reports, and keeps what was wrong with them.
class Reports final : public LogSink {
 public:
  bool enabled(LogLevel level, std::string_view) const noexcept override {
    return level >= LogLevel::error;
  }
  void log(LogRecord&& record) noexcept override {
    ++count;
    if (record.message.size() > kReportBytesMax) ++too_long;
    if (record.message.find("open sesame") != std::string::npos) ++tell_the_secret;
    if (record.message.find("too much") != std::string::npos) ++tell_the_reason;
  }
  std::atomic<size_t> count{0}, too_long{0}, tell_the_secret{0}, tell_the_reason{0};
};

/// From now on VmHWM is the most of what follows.
void forget_peak() {
  std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
  if (file == nullptr) throw std::runtime_error("no /proc/self/clear_refs");
  std::fputs("5", file);
  std::fclose(file);
}

Async<void> send_bulk(Server<Huge> to) {
  Bulk bulk{.content = std::string(kLastMessage, 'y')};
  (void)co_await try_call(to, std::move(bulk));
}

/// Suspends the server and fills its mailbox, the message that it will fail of first.
Async<void> prepare(Server<Huge> huge) {
  (co_await sys::suspend(huge)).or_exit();
  spawn(send_bulk, huge);
  while ((co_await sys::get_status(huge)).or_exit().message_queue_len == 0) co_await otp::yield();
  for (int i = 0; i < kLetters; ++i) {
    Line line{std::string(1024, 'z')};
    (void)otp::send(huge, std::move(line));
  }
}

/// How much memory it took, in KiB, to crash so many at once and have them back.
Async<long> crash_all(size_t count) {
  SupervisorSpec spec{.intensity = 1000};
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    starts[i] = 0;
    names.push_back("huge_" + std::to_string(i));
    spec.children.push_back(child<Huge>(names[i], {.number = i}, {.name = names[i]}));
  }
  auto sup = (co_await Supervisor::start_link(std::move(spec))).or_exit();
  std::vector<Server<Huge>> servers;
  for (const std::string& name : names) servers.emplace_back(whereis(name).value());
  for (Server<Huge> each : servers) co_await prepare(each);

  forget_peak();
  const long before = proc_status("VmRSS");
  for (Server<Huge> each : servers) (co_await sys::resume(each)).or_exit();
  for (const std::string& name : names) {
    for (bool ready = false; !ready;) {
      if (std::optional<Pid> pid = whereis(name)) {
        auto answer = co_await try_call(Server<Huge>(*pid), Ready());
        ready = answer.ok() && answer.value();
      }
      if (!ready) co_await otp::yield();
    }
  }
  const long rise = proc_status("VmHWM") - before;
  co_await otp::stop(sup);
  co_return rise;
}

long crash_in_a_system(size_t count, Reports& reports) {
  SystemOptions options;
  options.cores = 2;
  options.log = &reports;
  System system(options);
  return system.run(crash_all, count);
}

}  // namespace

TEST_CASE("R-027 ten large servers that crash at once cost little memory", "[regression]") {
  Reports reports;
  const long rise = crash_in_a_system(kServers, reports);
  INFO("memory rose by " << rise << " KiB");
  CHECK(rise < kRiseMaxKb);
  CHECK(reports.count >= 2 * kServers);
  CHECK(reports.tell_the_reason >= 2 * kServers);
  CHECK(reports.too_long == 0);
  CHECK(reports.tell_the_secret == 0);
}

// One at a time: ten at once measure how two processors free ten servers' memory.
TEST_CASE("R-027 a large server that crashes is back at once", "[regression]") {
  Reports reports;
  std::vector<Clock::duration> took;
  for (int round = 0; round < 9; ++round) {
    crash_in_a_system(1, reports);
    took.push_back(back_at[0] - thrown_at[0]);
  }
  std::sort(took.begin(), took.end());
  CHECK(took.front() > 0s);
  CHECK(took[took.size() / 2] < kRestartMax);
}
