#include "tests/conformance/worlds.h"

#include <catch2/catch.hpp>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bazel/replay.h"
#include "otp/base/atomic.h"
#include "otp/base/log.h"
#include "otp/testing/simulator.h"

namespace otp::testing {

namespace {

using namespace std::chrono_literals;

constexpr auto kStuckAfter = 30s;

Atomic<uint64_t> requirements{0};  // how often require() ran

/// Keeps what a round logs.
class Records final : public LogSink {
 public:
  bool enabled(LogLevel level, std::string_view) const noexcept override {
    return level >= LogLevel::warning;
  }
  void log(LogRecord&& record) noexcept override {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::string(to_string(record.level)) + " " + record.message);
  }
  std::vector<std::string> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

/// Aborts the test when a round takes for ever, and says which.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void round(const char* what, uint64_t number) {
    std::lock_guard lock(mutex_);
    what_ = what;
    number_ = number;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      const uint64_t before = number_;
      if (changed_.wait_for(lock, kStuckAfter, [&] { return done_; })) return;
      if (number_ != before) continue;
      std::fprintf(stderr, "%s %llu does not end\n", what_,
                   static_cast<unsigned long long>(before));
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // guarded by mutex_, as is what follows
  const char* what_ = "";
  uint64_t number_ = 0;
  std::thread thread_;
};

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == 0) return otherwise;
  uint64_t value = 0;
  const char* end = text + std::strlen(text);
  auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc() || rest != end || value == 0) {
    throw std::invalid_argument(std::string(variable) + "=" + text + ": expected a number above 0");
  }
  return value;
}

uint64_t only_seed() { return number_from("OTP_SEED", 0); }

size_t timers_armed(internal::SystemImpl& system) {
  size_t armed = 0;
  for (uint32_t index = 0; index < system.core_count(); ++index) {
    internal::Core& core = system.core(index);
    std::lock_guard lock(core.wheel_mutex);
    armed += core.wheel.armed();
  }
  return armed;
}

internal::SystemImpl& system_here() { return *internal::env().system; }

std::string count(size_t number, const char* what) {
  return number == 0 ? std::string() : " " + std::to_string(number) + " " + what;
}

// What this process and its System hold that a finished round must not: empty, or a list.
std::string what_is_left() {
  using namespace internal;
  LibraryScope scope(env());
  Process& process = self_process();
  SystemImpl& system = process.system();
  process.drain_now();
  std::string left = count(process.queue_length(), "messages");
  if (Process::Relations* ties = process.relations_if_any()) {
    left += count(ties->links.size(), "links") + count(ties->monitors.size(), "monitors") +
            count(ties->watchers.size(), "watchers") + count(ties->aliases.size(), "aliases");
  }
  left += count(system.process_count() - 1, "other processes");
  left += count(system.names().size(), "names");
  // This process's own timer may stay armed for its next wait, but not in a simulation.
  const size_t armed = timers_armed(system);
  if (armed > (system.simulated() ? 0 : 1)) left += count(armed, "timers");
  return left;
}

Async<void> settle() {
  if (simulated()) {
    co_await otp::sleep(200ms);
    co_return;
  }
  for (const Duration end = now() + 10s; system_here().process_count() > 1 && now() < end;) {
    co_await otp::yield();
  }
  co_await otp::yield();
}

Async<void> round_of(Body body) {
  co_await body();
  co_await settle();
  const std::string left = what_is_left();
  if (!left.empty()) throw std::logic_error("left over:" + left);
}

uint64_t rounds_of(uint64_t asked) {
  return asked == kRounds ? number_from("OTP_ROUNDS", asked) : asked;
}

Records& records() {
  static Records kept;
  return kept;
}

}  // namespace

void simulate(Body body, uint64_t seeds, Log log) {
  const uint64_t only = only_seed();
  const uint64_t last = only != 0 ? only : rounds_of(seeds);
  const uint64_t before = requirements.load(internal::relaxed);
  Watchdog watchdog;
  for (uint64_t seed = only != 0 ? only : 1; seed <= last; ++seed) {
    watchdog.round("seed", seed);
    Replay replay(seed);
    SystemOptions options;
    if (log == Log::kept) options.log = &records();
    Simulator simulator(seed, options);
    (void)records().take();
    try {
      simulator.run(round_of, body);
    } catch (const std::exception& error) {
      FAIL("seed " << seed << ": " << error.what());
    }
  }
  CHECK(requirements.load(internal::relaxed) > before);
}

void on_threads(Body body, uint64_t rounds, Log log) {
  if (only_seed() != 0) return;
  const uint64_t last = rounds_of(rounds);
  const uint64_t before = requirements.load(internal::relaxed);
  Watchdog watchdog;
  SystemOptions options;
  options.cores = 2;
  if (log == Log::kept) options.log = &records();
  System system(options);
  for (uint64_t round = 1; round <= last; ++round) {
    watchdog.round("round", round);
    (void)records().take();
    try {
      system.run(round_of, body);
    } catch (const std::exception& error) {
      FAIL("round " << round << " on threads: " << error.what());
    }
  }
  CHECK(requirements.load(internal::relaxed) > before);
}

void everywhere(Body body, uint64_t rounds, Log log) {
  simulate(body, rounds, log);
  on_threads(body, rounds, log);
}

void require(bool condition, const std::string& what) {
  requirements.fetch_add(1, internal::relaxed);
  if (!condition) throw std::logic_error(what);
}

void require_equal(const std::string& is, const std::string& expected) {
  require(is == expected, "got " + is + ", expected " + expected);
}

void require_reason(const ExitReason& is, const std::string& expected) {
  require_equal(is.to_string(), expected);
}

Async<void> wait_for_ever() { co_await otp::sleep(infinity); }

std::vector<Pid> tenants_after(Pid dead) {
  std::vector<Pid> tenants;
  do {
    tenants.push_back(spawn(wait_for_ever));
    if (tenants.size() > 100'000) throw std::logic_error("no tenant of the slot");
  } while (tenants.back().slot() != dead.slot());
  return tenants;
}

Async<void> require_silence() {
  if (simulated()) co_await otp::sleep(200ms);
  size_t waiting;
  {
    internal::LibraryScope scope(internal::env());
    internal::self_process().drain_now();
    waiting = internal::self_process().queue_length();
  }
  require(waiting == 0, std::to_string(waiting) + " messages that nobody expects");
}

Async<void> gone(Pid pid) {
  Reference reference = monitor(pid);
  (void)co_await down_of(reference);
}

Async<void> end(Pid pid) {
  Reference reference = monitor(pid);
  otp::exit(pid, ExitReason::kill());
  (void)co_await down_of(reference);
}

Async<ExitReason> down_of(Reference reference) {
  auto wanted = [reference](const Down& each) { return each.reference == reference; };
  Down down = co_await receive<Down>(wanted);
  co_return down.reason;
}

Async<ExitReason> end_of(Body body) {
  auto spawned = spawn_monitor(body);
  co_return co_await down_of(spawned.second);
}

Duration now() { return Duration(system_here().now()); }

bool simulated() { return system_here().simulated(); }

size_t link_count() {
  using namespace internal;
  LibraryScope scope(env());
  Process& process = self_process();
  process.drain_now();
  Process::Relations* ties = process.relations_if_any();
  return ties == nullptr ? 0 : ties->links.size();
}

std::vector<std::string> logged() { return records().take(); }

Term first_of(const ExitReason& reason) {
  return reason.term().items().empty() ? Term() : reason.term().items().front();
}

}  // namespace otp::testing
