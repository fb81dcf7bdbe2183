#include "otp/testing/test.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "otp/runtime/system.h"
#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"

namespace otp::test {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kSupervisorName = "otp.test.supervisor";
constexpr uint32_t kRestartsMax = 1'000'000;  // a test decides what is too often, not this

SupervisorRef supervisor_of_test() { return Name<Supervisor>(std::string(kSupervisorName)); }

Async<void> stop_all() {
  auto pid = whereis(kSupervisorName);
  if (!pid) co_return;
  unlink(*pid);
  Reference reference = monitor(*pid);
  otp::exit(*pid, ExitReason::shutdown());
  auto ours = [reference](const Down& each) { return each.reference == reference; };
  (void)co_await receive<Down>(ours);
}

Async<void> one_round(const Body* body) {
  std::exception_ptr thrown;
  try {
    co_await (*body)();
  } catch (...) {
    thrown = std::current_exception();
  }
  co_await stop_all();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void run_round(System& system, const Body& body, const std::string& which) {
  try {
    system.run(one_round, &body);
  } catch (const std::exception& error) {
    throw Failed(which + ": " + error.what());
  }
}

uint64_t seed_of_environment() {
  const char* text = std::getenv("OTP_SEED");
  if (text == nullptr || *text == 0) return 0;
  const std::string_view digits(text);
  uint64_t seed = 0;
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (result.ec == std::errc() && result.ptr == digits.data() + digits.size() && seed > 0) {
    return seed;
  }
  throw Failed("OTP_SEED=" + std::string(digits) + ": expected a number above 0");
}

std::string milliseconds(Timeout time) {
  return time.is_infinite() ? "for ever" : std::to_string(time.nanoseconds() / 1'000'000) + " ms";
}

std::string type_of(const otp::internal::Letter& letter) {
  switch (letter.kind) {
    case otp::internal::LetterKind::down: return "otp::Down";
    case otp::internal::LetterKind::exit:
    case otp::internal::LetterKind::link_exit: return "otp::ExitMessage";
    default: return letter.operation == nullptr ? "?" : std::string(letter.operation->type->name);
  }
}

}  // namespace

void in_simulator(const Body& body, uint64_t seeds) {
  const uint64_t only = seed_of_environment();
  for (uint64_t seed = only != 0 ? only : 1; seed <= (only != 0 ? only : seeds); ++seed) {
    const std::string number = std::to_string(seed);
    Simulator simulator(seed);
    run_round(simulator, body, "seed " + number + " (OTP_SEED=" + number + " replays it)");
  }
}

void on_threads(const Body& body, uint64_t rounds) {
  SystemOptions options;
  options.cores = 2;
  for (uint64_t round = 1; round <= rounds; ++round) {
    System system(options);
    run_round(system, body, "round " + std::to_string(round) + " on threads");
  }
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw Failed("expected: " + what);
}

Async<Pid> start_supervised(ChildSpec spec) {
  if (!whereis(kSupervisorName)) {
    SupervisorSpec test{.intensity = kRestartsMax};
    StartOptions options{.name = std::string(kSupervisorName)};
    auto started = co_await Supervisor::start_link(std::move(test), std::move(options));
    expect(started.ok(), "the supervisor of the test starts");
  }
  const std::string id = spec.id;
  auto child = co_await Supervisor::start_child(supervisor_of_test(), std::move(spec));
  if (!child.ok()) throw Failed(id + " does not start: " + child.error().to_string());
  co_return child.value().pid;
}

Async<bool> stop_supervised(std::string id) {
  if (!whereis(kSupervisorName)) co_return false;
  auto stopped = co_await Supervisor::terminate_child(supervisor_of_test(), id);
  if (!stopped.ok()) co_return false;
  // A temporary child is forgotten already.
  (void)co_await Supervisor::delete_child(supervisor_of_test(), std::move(id));
  co_return true;
}

Timeout patience() {
  return otp::internal::env().system->simulated() ? Timeout(100ms) : Timeout(10s);
}

namespace detail {

void not_received(std::string_view type, Timeout within) {
  std::string text = "no " + std::string(type) + " within " + milliseconds(within);
  const std::vector<std::string> there = flush();
  text += there.empty() ? "; the mailbox is empty" : "; the mailbox holds";
  for (const std::string& each : there) text += " " + each;
  throw Failed(text);
}

void received(std::string_view type) { throw Failed("a message of type " + std::string(type)); }

}  // namespace detail

Async<ExitReason> expect_down(Pid pid, Timeout within) {
  Reference reference = monitor(pid);
  auto ours = [reference](const Down& each) { return each.reference == reference; };
  auto down = co_await receive<Down>(ours, after(within));
  if (!down) {
    (void)demonitor(reference, true);
    throw Failed(pid.to_string() + " lives on after " + milliseconds(within));
  }
  co_return std::move(down->reason);
}

std::vector<std::string> flush() {
  using namespace otp::internal;
  LibraryScope scope(env());
  Process& process = self_process();
  process.drain_now();
  std::vector<std::string> types;
  while (Letter* letter = process.pop_message()) {
    types.push_back(type_of(*letter));
    process.consume(letter);
  }
  return types;
}

Duration now() { return Duration(otp::internal::env().system->now()); }

}  // namespace otp::test
