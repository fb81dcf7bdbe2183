// What a whole program says: otp::run in a process of its own, whose output is kept.

#include "otp/application/run.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "otp/behaviour/gen_server.h"

using namespace otp;
using namespace std::chrono_literals;

namespace {

struct Ask {
  using Reply = int;
};

class Ledger {
 public:
  int handle_call(Ask) { return 7; }
};

Application bank() {
  Application bank;
  bank.name = "bank";
  bank.servers = servers<Ledger>();
  return bank;
}

std::string path_of(const std::string& name) {
  const char* folder = getenv("TEST_TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/" + name;
}

std::string configuration() {
  const std::string path = path_of("bank.yaml");
  std::ofstream(path) << "application: bank\n"
                         "supervisor:\n"
                         "  children:\n"
                         "    - {id: first, start: Ledger}\n"
                         "    - {id: second, start: Ledger}\n";
  return path;
}

struct Ended {
  int status = -1;
  std::string output;  // standard output and standard error
};

Ended run_program(Application application, std::vector<std::string> words,
                  const char* log_level = "") {
  const std::string path = path_of("output");
  const pid_t child = fork();
  if (child == 0) {
    setenv("BANK_LOG_LEVEL", log_level, 1);
    if (freopen(path.c_str(), "w", stdout) == nullptr) _exit(99);
    if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0) _exit(99);
    words.insert(words.begin(), "bank");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int status =
        run({std::move(application)}, static_cast<int>(words.size()), arguments.data());
    fflush(stdout);
    _exit(status);
  }
  Ended ended;
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  std::ifstream file(path, std::ios::binary);
  ended.output.assign(std::istreambuf_iterator<char>(file), {});
  return ended;
}

/// Where in the output each of these is; they have to be there, in this order.
void check_in_order(const std::string& output, const std::vector<std::string>& parts) {
  INFO(output);
  size_t from = 0;
  for (const std::string& part : parts) {
    INFO("looking for: " << part);
    const size_t at = output.find(part, from);
    REQUIRE(at != std::string::npos);
    from = at + part.size();
  }
}

Application bank_that_ends() {
  Application application = bank();
  application.ready = []() -> Async<std::string> {
    kill(getpid(), SIGTERM);
    co_return "";
  };
  return application;
}

}  // namespace

TEST_CASE("a configuration that is a directory or has no end is refused", "[run]") {
  const std::string folder = path_of(".");
  for (const char* command : {"check", "tree"}) {
    const Ended ended = run_program(bank(), {command, folder});
    CHECK(ended.status == 2);
    CHECK(ended.output == folder + ": Is a directory\n");
  }
  Ended ended = run_program(bank(), {"foreground", "--config", folder});
  CHECK(ended.status == 2);
  CHECK(ended.output == "bank: " + folder + ": Is a directory\n");
  ended = run_program(bank(), {"check", "/dev/zero"});
  CHECK(ended.status == 2);
  CHECK(ended.output == "/dev/zero: more than 16MiB\n");
}

TEST_CASE("a program that does not start ends with the reason for it", "[run]") {
  Application application = bank();
  application.ready = []() -> Async<std::string> {
    (void)co_await otp::call(Name<Ledger>("nobody"), Ask{});
    co_return "";
  };
  const Ended ended = run_program(application, {"foreground", "--config", configuration()});
  CHECK(ended.status == 1);
  check_in_order(ended.output, {"otp.application: stopping bank", "otp.application: stopped bank"});
  // The log has a writer of its own: this line stands anywhere.
  CHECK(ended.output.find("bank: bank is not ready: {noproc,") != std::string::npos);
  CHECK(ended.output.find("\nbank: stopped bank") == std::string::npos);
}

TEST_CASE("an orderly stop says why, and what it stops in which order", "[run]") {
  const Ended ended = run_program(bank_that_ends(), {"foreground", "--config", configuration()});
  CHECK(ended.status == 0);
  check_in_order(
      ended.output,
      {"stopping on signal TERM from pid ", "stopping bank",
       "otp.supervisor.stop: supervisor bank_sup: stopped child second <0.",
       "otp.supervisor.stop: supervisor bank_sup: stopped child first <0.", "stopped bank"});
  CHECK(ended.output.find(": started ") == std::string::npos);
}

TEST_CASE("an orderly stop is silent where only errors are wanted", "[run]") {
  const Ended ended =
      run_program(bank_that_ends(), {"foreground", "--config", configuration()}, "error");
  CHECK(ended.status == 0);
  CHECK(ended.output.find("otp.") == std::string::npos);
}
