// `start`: what the node inherits, and what its starter hears.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "otp/release/node.h"
#include "otp/release/testing/process_driver.h"

namespace otp::release::testing {
namespace {

namespace fs = std::filesystem;

TEST_CASE("R-019 start lets go of the pipe and of all it inherited", "[release][daemon]") {
  Installed installed;
  RunOptions options;
  options.input = make_fifo(installed.folder() / "input");
  options.in_child = [] {
    for (int fd = 3; fd <= 9; ++fd) dup2(1, fd);
    for (int fd = 3; fd <= 9; ++fd) fcntl(fd, F_SETFD, 0);
  };
  // run() waits until every copy of the pipes is closed.
  Ran started = installed.call({"start"}, options);
  CHECK(started.status == kExitOk);
  CHECK(started.out == "fake 1.0.0 started (pid " + std::to_string(installed.pid()) + "): here\n");
  CHECK(started.err.empty());

  long pid = installed.pid();
  CHECK(getsid(static_cast<pid_t>(pid)) == pid);
  CHECK(getsid(static_cast<pid_t>(pid)) != getsid(0));
  std::string fds = "/proc/" + std::to_string(pid) + "/fd/";
  CHECK(fs::read_symlink(fds + "0") == "/dev/null");
  CHECK(fs::read_symlink(fds + "1") == installed.run_dir() + "/fake.log");
  CHECK(fs::read_symlink(fds + "2") == installed.run_dir() + "/fake.log");
  for (const auto& entry : fs::directory_iterator(fds)) {
    std::error_code gone;
    std::string target = fs::read_symlink(entry.path(), gone).string();
    CHECK(target.find("pipe:") == std::string::npos);
    CHECK(target.find("input") == std::string::npos);
  }
  CHECK(fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd") == installed.run_dir());
}

TEST_CASE("R-019 a start that fails says why on both streams, and nothing is left",
          "[release][daemon]") {
  Installed installed;
  std::string reason;
  int status = kExitFailed;
  SECTION("the node says why") {
    installed.configure("fail 127.0.0.1:80: the port is taken\n");
    reason = "fake: could not start: 127.0.0.1:80: the port is taken\n";
    status = 2;
  }
  SECTION("the node throws") {
    installed.configure("throw the disk is gone\n");
    reason = "fake: could not start: the disk is gone\n";
  }
  SECTION("the node just ends: the end of its log tells") {
    installed.configure("die 7\n");
    reason = "fake: could not start: ended with status 7 before it was ready; from " +
             installed.run_dir() + "/fake.log:\nthe child 'listener' could not bind\n";
    status = 7;
  }
  Ran failed = installed.call({"start"});
  CHECK(failed.status == status);
  CHECK(failed.err == reason);
  CHECK(failed.out == reason);
  CHECK(installed.status_of("status") == kExitNotRunning);
  RunOptions together;
  together.errors_with_output = true;
  CHECK(installed.call({"start"}, together).out == reason);  // once
  installed.configure("");
  CHECK(installed.status_of("start") == kExitOk);
}

TEST_CASE("R-019 a node that is not ready in time is stopped in an orderly way",
          "[release][daemon]") {
  Installed installed;
  installed.configure("silent 1\n");
  Ran late = installed.call({"start", "--timeout", "50ms"});
  CHECK(late.status == kExitFailed);
  CHECK(late.err.find("fake: could not start: was not ready within 50 ms and was stopped") == 0);
  CHECK(installed.status_of("status") == kExitNotRunning);
  CHECK(installed.log().find("stopping on signal TERM") != std::string::npos);
}

TEST_CASE("the log is appended to", "[release][daemon]") {
  Installed installed;
  CHECK(installed.status_of("start") == kExitOk);
  CHECK(installed.status_of("restart") == kExitOk);
  CHECK(installed.status_of("stop") == kExitOk);
  CHECK(installed.events() == "started stopping stopped started stopping stopped ");
  std::string log = installed.log();
  size_t first = log.find("ready\n");
  REQUIRE(first != std::string::npos);
  CHECK(log.find("ready\n", first + 1) != std::string::npos);
}

TEST_CASE("R-031 a node out of descriptors still answers", "[release][daemon]") {
  if (sanitized()) {
    WARN("the sanitizer itself needs a descriptor to look at a virtual table");
    return;
  }
  Installed installed;
  installed.configure("hold_descriptors 1\n");
  REQUIRE(installed.status_of("start") == kExitOk);
  CHECK(installed.status_of("tree") == kExitOk);
  CHECK(installed.status_of("status") == kExitOk);
  CHECK(installed.status_of("stop") == kExitOk);
  CHECK(installed.status_of("status") == kExitNotRunning);
}

TEST_CASE("a node that is deaf to its stop still answers", "[release][daemon]") {
  Installed installed;
  installed.configure("deaf 1\n");
  REQUIRE(installed.status_of("start") == kExitOk);
  Ran stopped = installed.call({"stop", "--timeout", "100ms"});
  CHECK(stopped.status == kExitFailed);
  CHECK(stopped.err == "fake: is still stopping; `status` tells when it is gone\n");
  CHECK(installed.call({"status"}).out.find("is stopping (pid ") != std::string::npos);
  Ran second = installed.call({"start"});
  CHECK(second.status == kExitAlreadyRunning);
  CHECK(second.err.find(", stopping; ") != std::string::npos);
  kill(static_cast<pid_t>(installed.pid()), SIGKILL);
}

TEST_CASE("operators hear what is wrong with their words", "[release][daemon]") {
  Installed installed;
  auto error = [&](std::vector<std::string> words) {
    Ran ran = installed.call(std::move(words));
    CHECK(ran.status == kExitUsage);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error({}) == "fake: expected a command, got none (see --help)\n");
  CHECK(error({"begin"}) == "fake: unknown command 'begin' (see --help)\n");
  CHECK(error({"start", "now"}) == "fake: 'start' does not expect 'now' (see --help)\n");
  CHECK(error({"start", "--fast"}) == "fake: unknown option '--fast' (see --help)\n");
  CHECK(error({"admin"}) == "fake: 'admin' expects the node's command, got none (see --help)\n");
  CHECK(installed.call({"--help"}).out.find("FAKE_RUN_DIR") != std::string::npos);
  CHECK(installed.call({"schema"}).out == "{}\n");
  CHECK(installed.call({"status", "--json"}).out ==
        "{\"name\":\"fake\",\"state\":\"not running\"}\n");
  REQUIRE(installed.status_of("start") == kExitOk);
  CHECK(installed.call({"admin", "ping"}).out == "pong\n");
  CHECK(installed.call({"admin", "nope"}).err == "fake: unknown command 'nope'\n");
  CHECK(installed.call({"status", "--json"}).out.find("\"state\":\"running\"") !=
        std::string::npos);
}

TEST_CASE("a program outside a release takes no lock unless it has a run directory",
          "[release][daemon]") {
  Installed installed;
  fs::remove(installed.root() + "/release.json");
  installed.configure("");
  RunOptions here{.folder = installed.folder().path()};  // the node stays where it was called
  Running first({installed.program()}, here);
  Running second({installed.program(), "foreground"}, here);
  CHECK(first.wait_for_text("ready"));
  CHECK(second.wait_for_text("ready"));
  kill(first.pid(), SIGTERM);
  kill(second.pid(), SIGINT);
  CHECK(first.wait().status == kExitOk);
  CHECK(second.wait().status == kExitOk);
  CHECK(fs::exists(installed.folder() / "events"));
  CHECK(installed.call({"start"}).err ==
        "fake: 'start' needs a run directory: set FAKE_RUN_DIR or give --run-dir (see --help)\n");
  std::string run_dir = installed.folder() / "run";
  CHECK(installed.call({"start", "--run-dir", run_dir}).status == kExitOk);
  CHECK(installed.call({"stop", "--run-dir", run_dir}).status == kExitOk);
}

}  // namespace
}  // namespace otp::release::testing
