// One instance, whatever pid files say, and what the surroundings may look like.

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "otp/release/node.h"
#include "otp/release/testing/process_driver.h"

namespace otp::release::testing {
namespace {

namespace fs = std::filesystem;

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

void become_nobody() {
  if (setgid(65534) != 0 || setuid(65534) != 0) _exit(125);
}

/// status, stop and start after a crash, when the pid file is not to be believed.
void check_lying_pid_file(const Installed& installed) {
  Ran status = installed.call({"status"});
  CHECK(status.status == kExitNotRunning);
  CHECK(status.out == "fake is not running\n");
  CHECK(installed.call({"stop"}).status == kExitOk);
  Ran started = installed.call({"start"});
  INFO(started.err);
  CHECK(started.status == kExitOk);
  CHECK(installed.status_of("status") == kExitOk);
  CHECK(installed.status_of("stop") == kExitOk);
}

TEST_CASE("R-016 after a crash a lying pid file misleads nobody", "[release][instance]") {
  Installed installed;
  Running stranger({"/bin/sleep", "1000"}, {});
  Running crashed({installed.program(), "foreground"}, {});
  REQUIRE(crashed.wait_for_text("ready"));
  kill(crashed.pid(), SIGKILL);
  CHECK(crashed.wait().status == 128 + SIGKILL);
  REQUIRE(fs::exists(installed.run_dir() + "/fake.sock"));

  std::vector<std::string> lies = {std::to_string(stranger.pid()) + "\n",
                                   std::to_string(getpid()),
                                   "1",
                                   "",
                                   "-1",
                                   "0",
                                   "abc",
                                   "2147483648",
                                   "12 ",
                                   "\n",
                                   "\xff"};
  for (const std::string& lie : lies) {
    INFO("the pid file says '" << lie << "'");
    write_file(installed.run_dir() + "/fake.pid", lie);
    check_lying_pid_file(installed);
    CHECK(alive(stranger.pid()));
  }
}

TEST_CASE("R-016 a folder or a link in the pid file's place does no harm", "[release][instance]") {
  Installed installed;
  fs::create_directory(installed.run_dir());
  std::string pid_file = installed.run_dir() + "/fake.pid";
  SECTION("a folder") {
    fs::create_directory(pid_file);
    check_lying_pid_file(installed);
    CHECK(installed.log().find("going on, as only people read it") != std::string::npos);
  }
  SECTION("a link to another file") {
    write_file(installed.folder() / "other", "precious");
    fs::create_symlink(installed.folder() / "other", pid_file);
    check_lying_pid_file(installed);
    CHECK(read_text(installed.folder() / "other") == "precious");
  }
}

TEST_CASE("R-016 of two starts in the same moment one wins and the other says why",
          "[release][instance]") {
  Installed installed;
  for (int round = 0; round < 20; ++round) {
    Running first({installed.program(), "start"}, {});
    Running second({installed.program(), "start"}, {});
    Ran a = first.wait();
    Ran b = second.wait();
    INFO(a.err << b.err);
    CHECK(((a.status == kExitOk && b.status == kExitAlreadyRunning) ||
           (b.status == kExitOk && a.status == kExitAlreadyRunning)));
    const Ran& loser = a.status == kExitOk ? b : a;
    CHECK(loser.err.find("already running (") != std::string::npos);
    CHECK(installed.status_of("stop") == kExitOk);
  }
}

TEST_CASE("R-016 a start right after a kill -9 succeeds", "[release][instance]") {
  Installed installed;
  for (int round = 0; round < 10; ++round) {
    Ran started = installed.call({"start"});
    INFO(started.err);
    REQUIRE(started.status == kExitOk);
    kill(static_cast<pid_t>(installed.pid()), SIGKILL);
  }
}

TEST_CASE("a run directory whose lock file was removed still has one node", "[release][instance]") {
  Installed installed;
  REQUIRE(installed.status_of("start") == kExitOk);
  long pid = installed.pid();
  fs::remove(installed.run_dir() + "/fake.lock");
  Ran second = installed.call({"start"});
  CHECK(second.status == kExitFailed);
  CHECK(second.err.find("another node answers") != std::string::npos);
  CHECK(installed.pid() == pid);
}

TEST_CASE("R-017 it runs with next to no environment", "[release][instance]") {
  Installed installed;
  RunOptions options;
  SECTION("none at all") {}
  SECTION("HOME empty") { options.environment = {{"HOME", ""}, {"PATH", ""}}; }
  SECTION("HOME to nowhere") { options.environment = {{"HOME", "/none"}, {"TMPDIR", "/none"}}; }
  SECTION("umask 0777") {
    options.in_child = [] { umask(0777); };
  }
  SECTION("nice, no core files, small files") {
    options.in_child = [] {
      [[maybe_unused]] int level = nice(19);
      rlimit none{.rlim_cur = 0, .rlim_max = 0};
      rlimit small{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
      setrlimit(RLIMIT_CORE, &none);
      setrlimit(RLIMIT_FSIZE, &small);
    };
    installed.configure("chatter 200000\n");  // more than the limit lets into the log
  }
  SECTION("all signals blocked, children ignored") {
    options.in_child = [] {
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
      signal(SIGCHLD, SIG_IGN);
    };
  }
  for (const char* word : {"start", "status", "tree", "stop"}) {
    Ran ran = installed.call({word}, options);
    INFO(word << ": " << ran.err);
    CHECK(ran.status == kExitOk);
  }
}

TEST_CASE("R-017 closed standard streams are never taken by something else",
          "[release][instance]") {
  Installed installed;
  installed.configure("chatter 1000\n");
  RunOptions options;
  options.closed = {0, 1, 2};
  Running node({installed.program(), "foreground"}, options);
  // Its streams are gone, so only the events tell that it is up.
  while (installed.status_of("status") != kExitOk) REQUIRE(alive(node.pid()));
  for (int fd = 0; fd <= 2; ++fd) {
    std::string link = "/proc/" + std::to_string(node.pid()) + "/fd/" + std::to_string(fd);
    CHECK(fs::read_symlink(link) == "/dev/null");
  }
  CHECK(read_text(installed.run_dir() + "/fake.lock") ==
        "pid " + std::to_string(node.pid()) + "\n");
  CHECK(installed.status_of("stop") == kExitOk);
  CHECK(node.wait().status == kExitOk);

  for (const char* word : {"start", "status", "stop"}) {
    CHECK(installed.call({word}, options).status == kExitOk);
  }
}

TEST_CASE("R-018 a read-only release runs with its state elsewhere", "[release][instance]") {
  bool may_change = run({"/bin/true"}, {.in_child = become_nobody}).status == 0;
  if (!may_change) {
    WARN("needs the right to become another user");
    return;
  }
  Installed installed;
  std::string state = installed.folder() / "state";
  fs::create_directory(state);
  RunOptions options;
  options.in_child = become_nobody;
  SECTION("which is writable") {
    REQUIRE(chown(state.c_str(), 65534, 65534) == 0);
    options.environment = {{"FAKE_RUN_DIR", state}};
    SECTION("with a temporary directory that is missing") {
      options.environment["TMPDIR"] = "/none";
    }
    SECTION("without one") {}
    for (const char* word : {"start", "status", "tree", "stop"}) {
      Ran ran = installed.call({word}, options);
      INFO(word << ": " << ran.err);
      CHECK(ran.status == kExitOk);
    }
  }
  SECTION("which is read-only, too") {
    options.environment = {{"FAKE_RUN_DIR", state}};
    for (const char* word : {"start", "foreground"}) {
      Ran ran = installed.call({word}, options);
      CHECK(ran.status == kExitFailed);
      CHECK(is_one_line(ran.err));
      CHECK(ran.err.find(state) != std::string::npos);
    }
    CHECK(installed.call({"status"}, options).status == kExitNotRunning);
  }
  SECTION("which is not named") {
    Ran ran = installed.call({"start"}, options);
    CHECK(ran.status == kExitFailed);
    CHECK(is_one_line(ran.err));
    CHECK(ran.err.find(installed.run_dir()) != std::string::npos);
    CHECK(ran.err.find("FAKE_RUN_DIR") != std::string::npos);
  }
  CHECK_FALSE(fs::exists(installed.run_dir()));
  CHECK(std::distance(fs::directory_iterator(installed.root()), {}) == 3);
}

TEST_CASE("R-018 a full state directory is one line and no node", "[release][instance]") {
  Installed installed;
  std::string state = installed.folder() / "state";
  fs::create_directory(state);
  RunOptions options{.environment = {{"FAKE_RUN_DIR", state}}};
  options.in_child = [state] {
    bool mounted = unshare(CLONE_NEWNS) == 0 &&
                   mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                   mount("tmpfs", state.c_str(), "tmpfs", 0, "size=4k") == 0;
    if (!mounted) _exit(125);
    UniqueFd fill(open((state + "/fill").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    std::string page(4096, 'x');
    [[maybe_unused]] ssize_t written = write(fill.get(), page.data(), page.size());
  };
  for (const char* word : {"start", "foreground"}) {
    Ran ran = installed.call({word}, options);
    if (ran.status == 125) {
      WARN("needs the right to mount");
      return;
    }
    CHECK(ran.status == kExitFailed);
    CHECK(is_one_line(ran.err));
    CHECK(ran.err.find(state + "/fake.") != std::string::npos);
    CHECK(ran.err.find("No space left on device") != std::string::npos);
  }
}

}  // namespace
}  // namespace otp::release::testing
