#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "otp/runtime/runtime.h"

/// The two worlds in which the rows of the contract are checked: the Simulator, in virtual time
/// under many seeds, and real threads on two cores.
///
///     TEST_CASE("SIG-002 an end with normal does not touch the linked process") {
///       everywhere([]() -> Async<void> {
///         Pid child = spawn_link([]() -> Async<void> { co_return; });
///         require(co_await gone(child), "still there");
///       });
///     }
///
/// The body runs in a process of its own, once for each seed and round. It says what must hold with
/// require(), never with CHECK (Catch2 is for the test's own thread), takes well under 1 ms on
/// threads, does not sleep there, and ends every process that it started. When it has ended, each
/// round requires that nothing is left: no message in the mailbox, and none within the next 200 ms
/// of virtual time; no other process; no link, monitor, alias, timer or name. A body in which no
/// require() ran fails the test.
///
/// OTP_ROUNDS=100000 in the environment takes the place of kRounds, not of a smaller number;
/// OTP_SEED=17 runs that seed alone, and no threads. A round that does not end aborts the test,
/// with its number.
namespace otp::testing {

using Body = Async<void> (*)();

/// Seeds and rounds, unless OTP_ROUNDS says otherwise: what the contract asks of rows about races.
inline constexpr uint64_t kRounds = 1000;
/// For rows that have no race in them: how long to wait and what comes then.
inline constexpr uint64_t kFewRounds = 20;

/// Whether the System has a log, for logged(). Writing out the stack of an exception takes a while.
enum class Log : uint8_t { none, kept };

/// Runs `body` in the Simulator under the seeds 1 to `seeds`.
void simulate(Body body, uint64_t seeds = kRounds, Log log = Log::none);
/// Runs `body` on two cores `rounds` times, in one System.
void on_threads(Body body, uint64_t rounds = kRounds, Log log = Log::none);
/// Both of them.
void everywhere(Body body, uint64_t rounds = kRounds, Log log = Log::none);

// ---- For bodies, in a process.

/// Ends the round and fails the test unless `condition` holds; `what` says what was wrong.
void require(bool condition, const std::string& what);
/// require() with both values in the message.
void require_equal(const std::string& is, const std::string& expected);
void require_reason(const ExitReason& is, const std::string& expected);

/// A body for processes that only have to be there.
Async<void> wait_for_ever();
/// Requires an empty mailbox, after everything on its way has arrived; in the Simulator nothing may
/// come for 200 ms either.
Async<void> require_silence();
/// Waits until `pid` is gone: its name is free then, and what it announced has been sent.
Async<void> gone(Pid pid);
/// Kills the process and waits until it is gone.
Async<void> end(Pid pid);
/// Starts processes that wait until one of them has the slot of `dead`; returns them all.
std::vector<Pid> tenants_after(Pid dead);
/// The reason in the DOWN of `reference`.
Async<ExitReason> down_of(Reference reference);
/// Runs `body` in a process of its own; the reason with which that ends.
Async<ExitReason> end_of(Body body);

/// The time of this System's clock, virtual in the Simulator.
Duration now();
/// Whether this world is the Simulator.
bool simulated();
/// How many links this process has. OTP: process_info(self(), links).
size_t link_count();
/// What was logged since this round began, as "level message", and forgets it. With Log::kept.
std::vector<std::string> logged();

/// `{Reason,...}`: the first item of a reason.
Term first_of(const ExitReason& reason);

}  // namespace otp::testing
