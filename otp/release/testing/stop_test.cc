// Signals, stops, gone readers, process 1.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <sstream>

#include "otp/release/node.h"
#include "otp/release/testing/process_driver.h"

namespace otp::release::testing {
namespace {

namespace fs = std::filesystem;

/// A node in the foreground whose stop ends when the test opens a gate.
struct GatedStop {
  GatedStop() : gate(make_fifo(installed.folder() / "gate")) {
    installed.configure("stop_gate " + gate + "\n");
    node = std::make_unique<Running>(std::vector<std::string>{installed.program(), "foreground"},
                                     RunOptions{});
    REQUIRE(node->wait_for_text("ready"));
  }
  Installed installed;
  std::string gate;
  std::unique_ptr<Running> node;
};

TEST_CASE("R-022 asked again and again, a node stops once and in order", "[release][stop]") {
  GatedStop test;
  kill(test.node->pid(), SIGTERM);
  CHECK(test.node->wait_for_text("stopping on signal TERM from pid " + std::to_string(getpid())));
  kill(test.node->pid(), SIGTERM);
  CHECK(test.node->wait_for_text("signal TERM from pid " + std::to_string(getpid()) +
                                 ": the stop is under way"));
  kill(test.node->pid(), SIGINT);
  CHECK(test.node->wait_for_text("signal INT from"));
  kill(test.node->pid(), SIGHUP);
  CHECK(test.node->wait_for_text("ignoring signal HUP"));
  kill(test.node->pid(), SIGTERM);
  CHECK(test.installed.call({"status"}).out.find("is stopping") != std::string::npos);
  open_gate(test.gate);
  CHECK(test.node->wait().status == kExitOk);
  CHECK(test.installed.events() == "started stopping stopped ");
}

TEST_CASE("the third INT ends a node at once", "[release][stop]") {
  GatedStop test;
  kill(test.node->pid(), SIGINT);
  CHECK(test.node->wait_for_text("stopping on signal INT"));
  kill(test.node->pid(), SIGINT);
  CHECK(test.node->wait_for_text("third INT would end it at once"));
  kill(test.node->pid(), SIGINT);
  Ran ended = test.node->wait();
  CHECK(ended.status == 130);
  CHECK(ended.err.find("third INT: ending at once") != std::string::npos);
  CHECK(test.installed.status_of("status") == kExitNotRunning);
}

TEST_CASE("R-022 two stops and a TERM together all end well", "[release][stop]") {
  GatedStop test;
  Running first({test.installed.program(), "stop"}, {});
  Running second({test.installed.program(), "stop"}, {});
  kill(test.node->pid(), SIGTERM);
  open_gate(test.gate);
  CHECK(first.wait().status == kExitOk);
  CHECK(second.wait().status == kExitOk);
  CHECK(test.node->wait().status == kExitOk);
  CHECK(test.installed.events() == "started stopping stopped ");
}

TEST_CASE("R-022 a TERM at any moment of the boot ends in order", "[release][stop]") {
  Installed installed;
  for (int moment = 0; moment < 20; ++moment) {
    Running node({installed.program(), "foreground"}, {});
    // A spread of moments from "hardly begun" to "ready"; which is which does not matter.
    auto until = Clock::now() + std::chrono::microseconds(moment * 300);
    while (Clock::now() < until) continue;
    kill(node.pid(), SIGTERM);
    Ran ended = node.wait();
    INFO("moment " << moment << ": " << ended.err);
    // Before main runs there is nothing to stop, and the signal has its default.
    CHECK((ended.status == kExitOk || ended.status == 128 + SIGTERM));
    CHECK(installed.status_of("status") == kExitNotRunning);
  }
  std::string events = installed.events();
  for (size_t at = 0; !events.empty() && at < events.size(); at += 25) {
    CHECK(events.substr(at, 25) == "started stopping stopped ");
  }
}

TEST_CASE("R-022 a stop during the boot is heeded, and the starter told", "[release][stop]") {
  Installed installed;
  std::string gate = make_fifo(installed.folder() / "gate");
  installed.configure("boot_gate " + gate + "\n");
  Running starter({installed.program(), "start"}, {});
  while (installed.call({"status"}).out.find("is starting") == std::string::npos) continue;
  Running stop({installed.program(), "stop"}, {});
  while (installed.call({"status"}).out.find("is stopping") == std::string::npos) continue;
  open_gate(gate);
  CHECK(stop.wait().status == kExitOk);
  starter.wait();
  CHECK(installed.events() == "started stopping stopped ");
}

TEST_CASE("HUP does not end a node", "[release][stop]") {
  Installed installed;
  REQUIRE(installed.status_of("start") == kExitOk);
  long pid = installed.pid();
  kill(static_cast<pid_t>(pid), SIGHUP);
  CHECK(installed.pid() == pid);
  CHECK(installed.status_of("stop") == kExitOk);
  CHECK(installed.log().find("ignoring signal HUP") != std::string::npos);
}

TEST_CASE("R-025 a reader who has gone ends neither a node nor a command", "[release][stop]") {
  Installed installed;
  SECTION("of a node's output") {
    std::string gate = make_fifo(installed.folder() / "gate");
    installed.configure("boot_gate " + gate + "\nchatter 10000\n");
    Running node({installed.program(), "foreground"}, {});
    node.stop_reading();
    open_gate(gate);
    while (installed.call({"status"}).out.find("is running") == std::string::npos) {
      REQUIRE(alive(node.pid()));
    }
    CHECK(installed.status_of("stop") == kExitOk);
    CHECK(node.wait().status == kExitOk);
  }
  SECTION("of a command's answer") {
    REQUIRE(installed.status_of("start") == kExitOk);
    for (const char* word : {"tree", "status", "pid", "version", "--help"}) {
      RunOptions options;
      options.in_child = [] {
        int ends[2];
        if (pipe(ends) != 0) _exit(125);
        close(ends[0]);
        dup2(ends[1], 1);
      };
      Ran ran = installed.call({word}, options);
      CHECK(ran.status == kExitOk);
      CHECK(ran.err.empty());
    }
  }
}

TEST_CASE("R-026 a stalled reader of the output does not hold up the stop", "[release][stop]") {
  Installed installed;
  // Both streams go into a pipe that is full and that nobody reads.
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) continue;
  fcntl(ends[1], F_SETFL, 0);
  installed.configure("quiet 1\n");
  RunOptions options;
  options.in_child = [&] {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
  };
  Running node({installed.program(), "foreground"}, options);
  while (installed.call({"status"}).out.find("is running") == std::string::npos) {
    REQUIRE(alive(node.pid()));
  }
  kill(node.pid(), SIGHUP);
  SECTION("by signal") { kill(node.pid(), SIGTERM); }
  SECTION("by command") { CHECK(installed.status_of("stop") == kExitOk); }
  CHECK(node.wait().status == kExitOk);
  CHECK(installed.events() == "started stopping stopped ");
}

/// The state letter of a process, and the ids of all processes whose parent is `parent`.
std::string stat_of(const std::string& pid, size_t field) {
  std::string text = read_text("/proc/" + pid + "/stat");
  size_t end = text.rfind(") ");
  if (end == std::string::npos) return "";
  std::istringstream words(text.substr(end + 2));
  std::string word;
  for (size_t i = 0; i <= field; ++i) words >> word;
  return word;
}

std::vector<long> children_of(long parent) {
  std::vector<long> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (stat_of(name, 1) == std::to_string(parent)) children.push_back(std::stol(name));
  }
  return children;
}

/// Runs the node as process 1 of a new pid namespace: `unshare` forks it as its only child.
struct Container {
  explicit Container(const std::string& lines) {
    installed.configure(lines);
    node = std::make_unique<Running>(
        std::vector<std::string>{"/usr/bin/unshare", "--pid", "--fork", "--mount-proc",
                                 installed.program(), "foreground"},
        RunOptions{});
    works = node->wait_for_text("ready");
  }
  Installed installed;
  std::unique_ptr<Running> node;
  bool works = false;
};

TEST_CASE("R-023 as process 1 it reaps strangers and leaves the node its children",
          "[release][stop]") {
  Container container("children 100\n");
  if (!container.works) {
    WARN("needs the right to make a pid namespace");
    return;
  }
  std::vector<long> init = children_of(container.node->pid());
  REQUIRE(init.size() == 1);
  long node_pid = container.installed.pid();  // as seen from out here
  Ran status = container.installed.call({"status", "--json"});
  CHECK(status.out.find("\"right_statuses\":100") != std::string::npos);
  // All that the container will ever have beside the node: orphans that end soon, and are reaped.
  auto deadline = Clock::now() + std::chrono::seconds(30);
  while (children_of(init[0]) != std::vector<long>{node_pid} && Clock::now() < deadline) continue;
  CHECK(children_of(init[0]) == std::vector<long>{node_pid});
  CHECK(read_text(container.installed.run_dir() + "/fake.pid") == "2\n");

  SECTION("TERM to process 1, from outside") { kill(static_cast<pid_t>(init[0]), SIGTERM); }
  SECTION("TERM to the node, as from inside") { kill(static_cast<pid_t>(node_pid), SIGTERM); }
  SECTION("the command") { CHECK(container.installed.status_of("stop") == kExitOk); }
  CHECK(container.node->wait().status == kExitOk);
  CHECK(container.installed.events() == "started stopping stopped ");
}

TEST_CASE("R-016 in a new pid namespace the pid file may name the node itself", "[release][stop]") {
  Installed probe;
  fs::create_directory(probe.run_dir());
  write_file(probe.run_dir() + "/fake.pid", "2\n");
  Running node(
      {"/usr/bin/unshare", "--pid", "--fork", "--mount-proc", probe.program(), "foreground"}, {});
  if (!node.wait_for_text("ready")) {
    WARN("needs the right to make a pid namespace");
    return;
  }
  CHECK(probe.status_of("status") == kExitOk);
  CHECK(probe.status_of("stop") == kExitOk);
  CHECK(node.wait().status == kExitOk);
}

}  // namespace
}  // namespace otp::release::testing
