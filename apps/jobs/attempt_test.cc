#include "apps/jobs/attempt.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

namespace jobs {
namespace {

using Words = std::vector<std::string>;

using otp::io::Captured;
using How = otp::io::ChildExit::How;
using std::chrono::seconds;

const KindSettings kOnce{.command = Words{"tool"}, .timeout = seconds(5)};
const Job kFirst{.id = 7, .kind = "k", .state = State::running, .attempts = 1};

}  // namespace

TEST_CASE("the state follows the exit status", "[jobs][attempt]") {
  const FinishAttempt done =
      conclude(kOnce, kFirst,
               {.exit = {How::exited, 0}, .output = {"out", 3}, .error = {"warn", 4}}, Moment(9));
  CHECK(done.id == 7);
  CHECK(done.attempt == 1);
  CHECK(done.state == State::done);
  CHECK(done.exit_status == 0);
  CHECK(done.output == "out");
  CHECK(done.error == "warn");
  CHECK(done.at == Moment(9));
  const FinishAttempt failed = conclude(kOnce, kFirst, {.exit = {How::exited, 3}}, Moment(9));
  CHECK(failed.state == State::failed);
  CHECK(failed.exit_status == 3);
  CHECK(failed.error == "exit status 3");
  const FinishAttempt worded =
      conclude(kOnce, kFirst, {.exit = {How::exited, 3}, .error = {"no such host", 12}}, Moment(9));
  CHECK(worded.error == "no such host");
}

TEST_CASE("a signal is told before the command's own words and gives no exit status",
          "[jobs][attempt]") {
  const FinishAttempt finish =
      conclude(kOnce, kFirst, {.exit = {How::signalled, SIGSEGV}, .error = {"half", 4}}, Moment(9));
  CHECK(finish.state == State::failed);
  CHECK(!finish.exit_status);
  CHECK(finish.error == "killed by signal 11 (Segmentation fault)\nhalf");
}

TEST_CASE("a timeout is a state of its own, however the command went", "[jobs][attempt]") {
  const FinishAttempt killed =
      conclude(kOnce, kFirst, {.exit = {How::signalled, SIGKILL}, .timed_out = true}, Moment(9));
  CHECK(killed.state == State::timeout);
  CHECK(killed.error == "killed after its timeout of 5000 ms");
  CHECK(conclude(kOnce, kFirst, {.exit = {How::exited, 0}, .timed_out = true}, Moment(9)).state ==
        State::timeout);
}

TEST_CASE("a command that a stop has interrupted runs again, unless its kind says otherwise",
          "[jobs][attempt]") {
  const AttemptEnd end{.exit = {How::signalled, SIGTERM}, .error = {"half", 4}};
  const FinishAttempt again = interrupt(kOnce, kFirst, end, Moment(9));
  CHECK(again.state == State::queued);
  CHECK(again.due == Moment(9));
  CHECK(again.interrupted);
  CHECK(again.error == "interrupted: the service was stopped\nhalf");
  const AttemptEnd silent{.exit = {How::signalled, SIGTERM}};
  CHECK(interrupt(kOnce, kFirst, silent, Moment(9)).error ==
        "interrupted: the service was stopped");
  KindSettings once = kOnce;
  once.on_interrupt = OnInterrupt::fail;
  CHECK(interrupt(once, kFirst, end, Moment(9)).state == State::failed);
}

TEST_CASE("R-033 a cut is marked and does not split a letter", "[jobs][attempt]") {
  const FinishAttempt finish = conclude(
      kOnce, kFirst, {.exit = {How::exited, 0}, .output = {"x\xc3\xa9\xc3", 5000}}, Moment(9));
  CHECK(finish.output == "x\xc3\xa9");
  CHECK(finish.output_truncated);
  CHECK(!finish.error_truncated);
  // Without a cut the bytes are the command's own, good or bad.
  CHECK(conclude(kOnce, kFirst, {.exit = {How::exited, 0}, .output = {"x\xc3", 2}}, Moment(9))
            .output == "x\xc3");
}

TEST_CASE("what fails is queued again until the retries are used up", "[jobs][attempt]") {
  KindSettings settings = kOnce;
  settings.retries = 2;
  settings.backoff = {.min = seconds(1), .max = seconds(60), .factor = 2};
  Job job = kFirst;
  const AttemptEnd end{.exit = {How::exited, 1}};
  CHECK(conclude(settings, job, end, Moment(0)).state == State::queued);
  CHECK(conclude(settings, job, end, Moment(0)).due == seconds(1));
  job.attempts = 2;
  CHECK(conclude(settings, job, end, Moment(0)).due == seconds(2));
  job.attempts = 3;
  CHECK(conclude(settings, job, end, Moment(0)).state == State::failed);
  job.interruptions = 1;  // one of the three was not its own fault
  CHECK(conclude(settings, job, end, Moment(0)).state == State::queued);
}

TEST_CASE("R-038 a command that cannot be started follows the retry rule and says why",
          "[jobs][attempt]") {
  const otp::io::SystemError error{.code = EAGAIN, .what = "start the command"};
  const FinishAttempt failed = conclude(kOnce, kFirst, error, Moment(9));
  CHECK(failed.state == State::failed);
  CHECK(!failed.exit_status);
  CHECK(failed.error == "cannot start the command: Resource temporarily unavailable");
  KindSettings settings = kOnce;
  settings.retries = 1;
  CHECK(conclude(settings, kFirst, error, Moment(9)).state == State::queued);
}

}  // namespace jobs
