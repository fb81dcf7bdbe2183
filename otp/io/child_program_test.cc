#include "otp/io/child_program.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "otp/io/guardian.h"
#include "otp/io/internal/command_runner.h"

namespace otp::io {
namespace {

using internal::CommandRunner;
using internal::eventually;
using internal::Outcome;

/// Runs `node` in an OS process of its own (a node that may be killed). Returns its pid.
template <class Node>
pid_t fork_node(Node node) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(node());
  return pid;
}

int status_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

pid_t first_number(const std::string& text) {
  pid_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool alive(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat && stat->state != 'Z';
}

std::vector<pid_t> members_of(pid_t group) {
  std::vector<pid_t> members;
  for (const ProcessStat& process : all_processes()) {
    if (process.group == group && process.state != 'Z') members.push_back(process.pid);
  }
  return members;
}

std::string unique_file(const char* name) {
  const char* folder = std::getenv("TEST_TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/" + name + "." +
         std::to_string(::getpid());
}

/// Processes of this parent; commands' orphans end up with the guardian.
size_t children_of(pid_t parent) {
  return static_cast<size_t>(std::ranges::count_if(
      all_processes(), [&](const ProcessStat& process) { return process.parent == parent; }));
}

// The first instructions of every test binary here: it is its own guardian.
__attribute__((constructor)) void become_guardian(int argc, char** argv) {
  if (is_guardian(argc, argv)) ::_exit(guardian_main());
}

}  // namespace

TEST_CASE("a command's exit status, output and error come back", "[io][child]") {
  CommandRunner runner;
  const Outcome outcome = runner.run({"sh", "-c", "echo out; echo err >&2; exit 3"});
  REQUIRE(outcome.exit);
  CHECK(outcome.exit->how == ChildExit::How::exited);
  CHECK(outcome.exit->code == 3);
  CHECK(outcome.output.bytes == "out\n");
  CHECK(outcome.error.bytes == "err\n");
  CHECK(runner.run({"true"}).exit->success());
  CHECK(runner.run({"sh", "-c", "kill -9 $$"}).exit->to_string() == "killed by signal 9 (Killed)");
}

TEST_CASE("input reaches the command and ends", "[io][child]") {
  CommandRunner runner;
  const Outcome outcome = runner.run({"sha256sum"}, {.input = "hello"});
  CHECK(outcome.output.bytes ==
        "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824  -\n");
}

TEST_CASE("a command that cannot be started says why", "[io][child]") {
  CommandRunner runner;
  CHECK(runner.run({"no-such-program-here"}).failed->code == ENOENT);
  CHECK(runner.run({"/no/such/program"}).failed->code == ENOENT);
  CHECK(runner.run({"/etc/passwd"}).failed->code == EACCES);
  CHECK(runner.run({""}).failed->code == EINVAL);
  CHECK(runner.run({std::string("a\0b", 3)}).failed->code == EINVAL);
  CHECK(runner.run({"true", std::string(200 << 10, 'x')}).failed->code == E2BIG);
  const uint64_t id = runner.start({.argv = {"true"}, .env = {}, .directory = "/no/such/folder"});
  REQUIRE(runner.until([&] { return runner.ended(id); }));
  CHECK(runner.outcomes[id].failed->code == ENOENT);
  CHECK(runner.programs.running() == 0);
}

TEST_CASE("the program is looked up in the command's own PATH", "[io][child]") {
  CommandRunner runner;
  const uint64_t without = runner.start({.argv = {"true"}, .env = {"PATH=/nowhere::relative"}});
  const uint64_t standard = runner.start({.argv = {"true"}, .env = {}});
  REQUIRE(runner.until([&] { return runner.ended(without) && runner.ended(standard); }));
  CHECK(runner.outcomes[without].failed->code == ENOENT);
  CHECK(runner.outcomes[standard].exit->success());
}

TEST_CASE("R-035 commands have no blocked and no ignored signals", "[io][child]") {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  ::signal(SIGQUIT, SIG_IGN);
  CommandRunner runner;
  const Outcome masks = runner.run({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  ::signal(SIGQUIT, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(masks.output.bytes == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_CASE("R-035 a pipeline that lives by SIGPIPE ends at once", "[io][child]") {
  CommandRunner runner;
  const Outcome outcome = runner.run({"sh", "-c", "yes | head -1"});
  CHECK(outcome.exit->success());
  CHECK(outcome.output.bytes == "y\n");
  CHECK(outcome.error.bytes.empty());
}

TEST_CASE("R-035 environment, umask and directory are as documented", "[io][child]") {
  ::setenv("JOBS_TOKEN", "secret", 1);
  CommandRunner runner;
  CHECK(runner.run({"env"}).output.bytes == "PATH=/usr/bin:/bin\n");
  ::unsetenv("JOBS_TOKEN");
  const uint64_t id =
      runner.start({.argv = {"sh", "-c", "umask; pwd"}, .env = {}, .directory = "/usr"});
  REQUIRE(runner.until([&] { return runner.ended(id); }));
  CHECK(runner.outcomes[id].output.bytes == "0022\n/usr\n");
  std::string environment;
  const std::string guardian = std::to_string(runner.programs.guardian_pid());
  REQUIRE(read_small_file("/proc/" + guardian + "/environ", environment));
  CHECK(environment.empty());
}

TEST_CASE("R-035 a sleeping command dies of TERM with its whole group", "[io][child]") {
  CommandRunner runner;
  const uint64_t sibling = runner.start({"sleep", "300"});
  const uint64_t id = runner.start({"sh", "-c", "sleep 300 & sleep 300 & wait"});
  REQUIRE(runner.until_started(sibling));
  REQUIRE(runner.until_started(id));
  const pid_t group = runner.outcomes[id].process->pid;
  REQUIRE(runner.until([&] { return members_of(group).size() == 3; }));
  runner.programs.signal(id, SIGTERM);
  REQUIRE(runner.until([&] { return runner.ended(id); }));
  CHECK(runner.outcomes[id].exit->how == ChildExit::How::signalled);
  CHECK(runner.outcomes[id].exit->code == SIGTERM);
  CHECK(eventually([&] { return members_of(group).empty(); }));
  CHECK(alive(runner.outcomes[sibling].process->pid));
  CHECK(!runner.ended(sibling));
}

TEST_CASE("a signal sent before the command has started reaches it", "[io][child]") {
  CommandRunner runner;
  const uint64_t id = runner.start({"sleep", "300"});
  runner.programs.signal(id, SIGKILL);
  REQUIRE(runner.until([&] { return runner.ended(id); }));
  CHECK(runner.outcomes[id].exit->code == SIGKILL);
  runner.programs.signal(id, SIGKILL);  // too late: nothing happens
  CHECK(runner.run({"true"}).exit->success());
}

TEST_CASE("R-036 no command sees a descriptor of the node or of another command", "[io][child]") {
  Descriptor leaky(::open("/etc/passwd", O_RDONLY));  // no O_CLOEXEC, as a careless library would
  REQUIRE(leaky);
  CommandRunner runner;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(runner.start({"ls", "/proc/self/fd"}));
  REQUIRE(runner.until(
      [&] { return std::ranges::all_of(ids, [&](uint64_t id) { return runner.ended(id); }); }));
  for (const uint64_t id : ids) {
    CHECK(runner.outcomes[id].exit->success());
    CHECK(runner.outcomes[id].output.bytes == "0\n1\n2\n3\n");  // 3: what ls itself opened
  }
}

TEST_CASE("R-037 big input and output are pumped together", "[io][child]") {
  CommandRunner runner;
  const std::string input(8 << 20, 'i');
  const auto run = [&](const std::string& script) {
    return runner.run({"sh", "-c", script}, {.input = input, .output_bytes_max = 1000});
  };
  const Outcome cat = run("cat");
  CHECK(cat.exit->success());
  CHECK(cat.output.total == input.size());
  CHECK(cat.output.bytes == std::string(1000, 'i'));
  CHECK(cat.output.cut());
  CHECK(run("true").exit->success());
  CHECK(run("exec <&-; sleep 0.1").exit->success());
  CHECK(run("exec >&- 2>&-; sleep 0.1").exit->success());
  const Outcome both = run("head -c 1M /dev/zero >&2; cat");
  CHECK(both.output.total == input.size());
  CHECK(both.error.total == 1 << 20);
  CHECK(run("head -c 200M /dev/zero").output.total == 200 << 20);
  CHECK(run("cat >/dev/null; exit 3").exit->code == 3);
}

TEST_CASE("R-037 the end does not wait for whoever still holds the pipes", "[io][child]") {
  CommandRunner runner;
  const Outcome outcome = runner.run({"sh", "-c", "echo said; setsid sleep 300 & exit 0"});
  REQUIRE(outcome.exit);
  CHECK(outcome.exit->success());
  CHECK(outcome.output.bytes == "said\n");
  CHECK(!outcome.output.cut());
}

TEST_CASE("R-023 orphans are collected and steal nobody's status", "[io][child]") {
  CommandRunner runner;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 100; ++i) {
    const std::string exit = "exit " + std::to_string(i);
    ids.push_back(runner.start({"sh", "-c", "(sleep 1; exec sleep 2) & " + exit}));
  }
  REQUIRE(runner.until(
      [&] { return std::ranges::all_of(ids, [&](uint64_t id) { return runner.ended(id); }); }));
  for (int i = 0; i < 100; ++i) CHECK(runner.outcomes[ids[i]].exit->code == i);
  CHECK(eventually([&] { return children_of(runner.programs.guardian_pid()) == 0; }));
}

TEST_CASE("a descendant that left its group is killed once nobody running can be its origin",
          "[io][child]") {
  CommandRunner runner;
  const uint64_t older = runner.start({"sleep", "300"});
  REQUIRE(runner.until_started(older));
  const Outcome origin =
      runner.run({"sh", "-c", "setsid sh -c 'echo $$; exec sleep 300' & sleep 0.2"});
  const pid_t stranger = first_number(origin.output.bytes);
  REQUIRE(stranger > 1);
  // It might be a descendant of `older`, so it lives on, and so does `older`.
  CHECK(alive(stranger));
  CHECK(alive(runner.outcomes[older].process->pid));
  runner.programs.signal(older, SIGKILL);
  REQUIRE(runner.until([&] { return runner.ended(older); }));
  CHECK(eventually([&] { return !alive(stranger); }));
  CHECK(eventually([&] { return children_of(runner.programs.guardian_pid()) == 0; }));
}

TEST_CASE("kill -9 of the node, alone or with one of its guardians, kills all descendants",
          "[io][child]") {
  enum { alone, with_guardian, with_keeper };
  const int killed = GENERATE(alone, with_guardian, with_keeper);
  auto made = make_pipe();
  Pipe& pids = std::get<Pipe>(made);
  const pid_t node = fork_node([&] {
    CommandRunner runner;
    const char* script = "sleep 300 & setsid sleep 300 & exec sleep 300";
    const uint64_t first = runner.start({"sh", "-c", script});
    const uint64_t second =
        runner.start({"sh", "-c", "trap '' TERM INT HUP; sleep 300; sleep 300"});
    runner.until_started(first);
    runner.until_started(second);
    const pid_t all[] = {runner.programs.guardian_pid(), runner.outcomes[first].process->pid,
                         runner.outcomes[second].process->pid};
    if (::write(pids.write_end.get(), all, sizeof all) < 0) return 1;
    runner.until([] { return false; });
    return 0;
  });
  pid_t all[3] = {};
  REQUIRE(::read(pids.read_end.get(), all, sizeof all) == sizeof all);
  const pid_t guardian = all[0];
  std::vector<pid_t> family;
  REQUIRE(eventually([&] {
    family.clear();
    for (const ProcessStat& process : all_processes()) {
      if (process.session == guardian || process.group == all[1] || process.parent == all[1]) {
        family.push_back(process.pid);
      }
    }
    return family.size() >= 6;  // guardian, exec'ed sleep, sleep, setsid sleep, sh, its sleep
  }));
  const pid_t keeper = process_stat(guardian)->parent;
  family.push_back(keeper);
  ::kill(node, SIGKILL);
  if (killed == with_guardian) ::kill(guardian, SIGKILL);
  if (killed == with_keeper) ::kill(keeper, SIGKILL);
  ::waitpid(node, nullptr, 0);
  CHECK(eventually([&] { return std::ranges::none_of(family, alive); }));
}

TEST_CASE("who starts with the same lock after a kill -9 finds nothing of the earlier life",
          "[io][child]") {
  const std::string lock = unique_file("commands");
  auto made = make_pipe();
  auto also_made = make_pipe();
  Pipe& pids = std::get<Pipe>(made);
  Pipe& seen = std::get<Pipe>(also_made);
  const pid_t node = fork_node([&] {
    CommandRunner runner({.lock = lock});
    const uint64_t id = runner.start({"sh", "-c", "setsid sleep 300 & exec sleep 300"});
    runner.until_started(id);
    const pid_t both[] = {runner.programs.guardian_pid(), runner.outcomes[id].process->pid};
    if (::write(pids.write_end.get(), both, sizeof both) < 0) return 1;
    runner.until([] { return false; });
    return 0;
  });
  pid_t both[2] = {};
  REQUIRE(::read(pids.read_end.get(), both, sizeof both) == sizeof both);
  pid_t stranger = 0;  // no stored identity leads to it
  REQUIRE(eventually([&] {
    for (const ProcessStat& process : all_processes()) {
      if (process.parent == both[1] && process.session == process.pid) stranger = process.pid;
    }
    return stranger != 0;
  }));
  const pid_t guardians[] = {both[0], process_stat(both[0])->parent};
  for (const pid_t guardian : guardians) ::kill(guardian, SIGSTOP);  // they are slow to notice
  ::kill(node, SIGKILL);
  ::waitpid(node, nullptr, 0);
  const pid_t next = fork_node([&] {
    auto launched = ChildPrograms::launch({.lock = lock});
    const bool left = alive(stranger);
    if (::write(seen.write_end.get(), &left, sizeof left) < 0) return 2;
    return std::holds_alternative<ChildPrograms>(launched) ? 0 : 1;
  });
  seen.write_end.reset();
  pollfd wait{.fd = seen.read_end.get(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&wait, 1, 100) == 0);  // ms
  for (const pid_t guardian : guardians) ::kill(guardian, SIGCONT);
  bool left = true;
  REQUIRE(::read(seen.read_end.get(), &left, sizeof left) == sizeof left);
  CHECK_FALSE(left);
  CHECK(status_of(next) == 0);
  ::unlink(lock.c_str());
}

TEST_CASE("a lock that is held, or cannot be, is told", "[io][child]") {
  const std::string lock = unique_file("commands");
  CommandRunner runner({.lock = lock});
  CHECK_FALSE(runner.programs.unlocked());
  auto second = ChildPrograms::launch({.lock = lock, .lock_timeout = {}});
  REQUIRE(std::holds_alternative<SystemError>(second));
  CHECK(std::get<SystemError>(second).code == ETIMEDOUT);
  CHECK_THAT(std::get<SystemError>(second).to_string(), Catch::Contains(lock));
  ::unlink(lock.c_str());

  CommandRunner without({.lock = "/proc/nowhere/commands"});
  REQUIRE(without.programs.unlocked());
  CHECK(without.programs.unlocked()->code == ENOENT);
  CHECK(without.run({"true"}).exit->code == 0);
}

TEST_CASE("when the guardian is killed its commands are reported lost and killed", "[io][child]") {
  CommandRunner runner;
  const uint64_t id = runner.start({"sh", "-c", "sleep 300 & sleep 300"});
  REQUIRE(runner.until_started(id));
  const pid_t group = runner.outcomes[id].process->pid;
  REQUIRE(runner.until([&] { return members_of(group).size() == 3; }));
  const pid_t guardian = runner.programs.guardian_pid();
  ::kill(GENERATE(true, false) ? guardian : process_stat(guardian)->parent, SIGKILL);
  REQUIRE(runner.until([&] { return runner.lost; }));
  CHECK(runner.outcomes[id].exit->how == ChildExit::How::lost);
  CHECK(eventually([&] { return members_of(group).empty(); }));
  const uint64_t next = runner.start({"true"});
  CHECK(runner.outcomes[next].failed->code == EPIPE);
}

TEST_CASE("a start that a killed guardian never answered is lost, not failed", "[io][child]") {
  for (int round = 0; round < 20; ++round) {
    CommandRunner runner;
    ::kill(runner.programs.guardian_pid(), SIGSTOP);  // so that it cannot answer
    const uint64_t id = runner.start({"sleep", "300"});
    ::kill(runner.programs.guardian_pid(), SIGKILL);
    REQUIRE(runner.until([&] { return runner.lost; }));
    CHECK_FALSE(runner.outcomes[id].failed.has_value());
    REQUIRE(runner.outcomes[id].exit.has_value());
    CHECK(runner.outcomes[id].exit->how == ChildExit::How::lost);
  }
}

TEST_CASE("what is left of a stored process group is killed, and nothing else", "[io][child]") {
  CommandRunner runner;
  const uint64_t id = runner.start({"sleep", "300"});
  REQUIRE(runner.until_started(id));
  const ProcessIdentity right = *runner.outcomes[id].process;
  CHECK(ProcessIdentity::from_text(right.to_text()) == right);
  ProcessIdentity other_start = right;
  other_start.start_ticks -= 1;
  ProcessIdentity other_session = right;
  other_session.session += 1;
  ProcessIdentity other_boot = right;
  other_boot.boot = "another";
  CHECK(kill_leftovers(other_start) == 0);
  CHECK(kill_leftovers(other_session) == 0);
  CHECK(kill_leftovers(other_boot) == 0);
  CHECK(kill_leftovers({.pid = 1, .start_ticks = 1, .session = 1, .boot = right.boot}) == 0);
  CHECK(alive(right.pid));
  CHECK(kill_leftovers(right) == 1);
  CHECK(runner.until([&] { return runner.ended(id); }));
  CHECK(kill_leftovers(right) == 0);
  for (const char* bad : {"", "1:2:3:b", "abc:1:1:b", "12", "12:x:1:b", "-5:1:1:b"}) {
    CHECK(!ProcessIdentity::from_text(bad));
  }
}

TEST_CASE("stop kills all commands before it returns", "[io][child]") {
  CommandRunner runner;
  const uint64_t id = runner.start({"sh", "-c", "trap '' TERM; sleep 300; sleep 300"});
  REQUIRE(runner.until_started(id));
  const pid_t pid = runner.outcomes[id].process->pid;
  CHECK(runner.programs.stop());
  CHECK(!alive(pid));
}

TEST_CASE("a node that does not read its events loses none of them", "[io][child]") {
  CommandRunner runner;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 300; ++i) ids.push_back(runner.start({"true"}));
  REQUIRE(runner.until(
      [&] { return std::ranges::all_of(ids, [&](uint64_t id) { return runner.ended(id); }); }));
  for (const uint64_t id : ids) {
    CHECK(runner.outcomes[id].process);
    CHECK(runner.outcomes[id].exit->success());
  }
  CHECK(runner.programs.running() == 0);
}

TEST_CASE("R-031 out of descriptors: the start is refused and later ones work", "[io][child]") {
  const int status = status_of(fork_node([] {
    CommandRunner runner;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const Descriptor probe(::open("/dev/null", O_RDONLY));
    const rlimit low{.rlim_cur = static_cast<rlim_t>(probe.get()) + 3, .rlim_max = limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
    const uint64_t refused = runner.start({"true"});
    ::setrlimit(RLIMIT_NOFILE, &limit);
    if (runner.outcomes[refused].failed->code != EMFILE) return 1;
    return runner.run({"true"}).exit->success() ? 0 : 2;
  }));
  CHECK(status == 0);
}

TEST_CASE("R-038 when no process can be started the command fails with the reason", "[io][child]") {
  constexpr int kCannot = 77;
  const int status = status_of(fork_node([] {
    constexpr uid_t kSomeUser = 54321;  // limits do not bind root
    if (::getuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(kSomeUser) != 0 ||
                            ::setuid(kSomeUser) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0)) {
      return kCannot;
    }
    CommandRunner runner;
    rlimit before{};
    ::prlimit(runner.programs.guardian_pid(), RLIMIT_NPROC, nullptr, &before);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    if (::prlimit(runner.programs.guardian_pid(), RLIMIT_NPROC, &none, nullptr) != 0) return 2;
    const Outcome refused = runner.run({"true"});
    ::prlimit(runner.programs.guardian_pid(), RLIMIT_NPROC, &before, nullptr);
    if (!refused.failed || refused.failed->code != EAGAIN) return 3;
    return runner.run({"true"}).exit->success() ? 0 : 4;
  }));
  if (status == kCannot) {
    WARN("not tried: this sandbox does not let root become another user");
    return;
  }
  CHECK(status == 0);
}

TEST_CASE("R-017 closed standard streams and an empty environment do not matter", "[io][child]") {
  const int status = status_of(fork_node([] {
    ::clearenv();
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    ::umask(0777);
    CommandRunner runner;
    for (int i = 0; i < 20; ++i) {
      const Outcome outcome = runner.run({"cat"}, {.input = "text"});
      if (!outcome.exit || !outcome.exit->success() || outcome.output.bytes != "text") return 1;
    }
    return 0;
  }));
  CHECK(status == 0);
}

TEST_CASE("a guardian whose main does not know its role is an error, not a second service",
          "[io][child]") {
  const auto wrong = ChildPrograms::launch({.program = "/bin/true"});
  REQUIRE(std::holds_alternative<SystemError>(wrong));
  const auto missing = ChildPrograms::launch({.program = "/no/such/program"});
  REQUIRE(std::holds_alternative<SystemError>(missing));
  CHECK(std::get<SystemError>(missing).code == ENOENT);
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string script = std::string(folder == nullptr ? "/tmp" : folder) + "/mute_guardian.sh";
  {
    const Descriptor file(::open(script.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));
    constexpr std::string_view kText = "#!/bin/sh\nexec sleep 300\n";
    REQUIRE(::write(file.get(), kText.data(), kText.size()) == static_cast<ssize_t>(kText.size()));
  }
  const auto mute =
      ChildPrograms::launch({.program = script, .start_timeout = std::chrono::milliseconds(50)});
  ::unlink(script.c_str());
  REQUIRE(std::holds_alternative<SystemError>(mute));
  CHECK(std::get<SystemError>(mute).code == ETIMEDOUT);
}

}  // namespace otp::io
