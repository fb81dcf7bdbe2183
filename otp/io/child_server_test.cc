#include "otp/io/child_server.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "otp/io/asio_poller.h"
#include "otp/io/guardian.h"
#include "otp/io/simulated_network.h"
#include "otp/runtime/runtime.h"
#include "otp/runtime/system.h"
#include "otp/testing/simulator.h"

using namespace otp;
using namespace std::chrono_literals;
using io::ChildCommand;
using io::ChildOptions;
using io::ChildOutcome;
using io::ChildProgram;
using io::ChildServer;

namespace {

// The first instructions of every test binary here: it is its own guardian.
__attribute__((constructor)) void become_guardian(int argc, char** argv) {
  if (io::is_guardian(argc, argv)) ::_exit(io::guardian_main());
}

ChildCommand shell(std::string text) {
  return {.argv = {"sh", "-c", std::move(text)}, .env = {"PATH=/usr/bin:/bin"}};
}

Async<Server<ChildServer>> start_server() {
  auto started = co_await start_link<ChildServer>();
  co_return std::move(started).or_exit();
}

Async<ChildOutcome> run(Server<ChildServer> server, ChildCommand command,
                        ChildOptions options = {}) {
  auto started = co_await ChildProgram::start(server, std::move(command), std::move(options));
  if (auto* error = std::get_if<io::SystemError>(&started)) {
    throw std::runtime_error(error->to_string());
  }
  std::optional<ChildOutcome> outcome = co_await std::get<ChildProgram>(started).wait();
  co_return std::move(*outcome);
}

bool alive(pid_t pid) {
  const auto stat = io::process_stat(pid);
  return stat && stat->state != 'Z';
}

struct Pids {
  pid_t child;
};

void on_threads(Async<void> (*test)()) {
  SystemOptions options;
  options.cores = 2;
  System system(io::system_options(options));
  system.run(test);
}

}  // namespace

TEST_CASE("a process runs a program and gets what it wrote and how it ended", "[io][child]") {
  on_threads([]() -> Async<void> {
    auto server = co_await start_server();
    ChildOutcome outcome =
        co_await run(server, shell("cat; echo err >&2; exit 3"), {.input = "in"});
    CHECK(outcome.exit.to_string() == "exit status 3");
    CHECK(outcome.output.bytes == "in");
    CHECK(outcome.error.bytes == "err\n");
    auto missing = co_await ChildProgram::start(server, {.argv = {"no-such-program"}});
    CHECK(std::get<io::SystemError>(missing).code == ENOENT);
    co_await stop(server);
    missing = co_await ChildProgram::start(server, {.argv = {"true"}});
    CHECK(std::get<io::SystemError>(missing).code == EPIPE);
  });
}

TEST_CASE("R-037 big pipes never wait for each other", "[io][child]") {
  on_threads([]() -> Async<void> {
    auto server = co_await start_server();
    const std::string input(8 << 20, 'x');
    ChildOutcome outcome = co_await run(server, shell("cat"), {.input = input});
    CHECK(outcome.exit.success());
    CHECK(outcome.output.total == input.size());
    CHECK(outcome.output.cut());
    CHECK((co_await run(server, shell("true"), {.input = input})).exit.success());
    CHECK((co_await run(server, shell("exec <&-; exit 0"), {.input = input})).exit.success());
    outcome = co_await run(server, shell("exec >&- 2>&-; exit 2"), {.input = input});
    CHECK(outcome.exit.code == 2);
    outcome = co_await run(server, shell("head -c 1M /dev/zero >&2; cat"), {.input = input});
    CHECK(outcome.error.total == 1 << 20);
    CHECK(outcome.output.total == input.size());
    outcome = co_await run(server, shell("head -c 50M /dev/zero"));
    CHECK(outcome.output.total == 50 << 20);
    CHECK(outcome.output.bytes.size() == 64 << 10);
  });
}

TEST_CASE("a program that takes too long is signalled and waited for again", "[io][child]") {
  on_threads([]() -> Async<void> {
    auto server = co_await start_server();
    auto started = co_await ChildProgram::start(server, shell("sleep 300"));
    auto& program = std::get<ChildProgram>(started);
    CHECK(alive(program.identity().pid));
    std::optional<ChildOutcome> outcome = co_await program.wait(10ms);
    CHECK_FALSE(outcome);
    program.signal(SIGTERM);
    outcome = co_await program.wait(10s);
    REQUIRE(outcome);
    CHECK(outcome->exit.to_string() == "killed by signal 15 (Terminated)");
  });
}

TEST_CASE("a program ends with the process that started it", "[io][child][kill]") {
  on_threads([]() -> Async<void> {
    auto server = co_await start_server();
    for (int round = 0; round < 20; ++round) {
      Pid main = self();
      auto owner = spawn_monitor(
          [](Server<ChildServer> s, Pid to) -> Async<void> {
            auto started = co_await ChildProgram::start(s, shell("cat; sleep 300"));
            auto& program = std::get<ChildProgram>(started);
            (void)otp::send(to, Pids{program.identity().pid});
            co_await program.wait();
          },
          server, main);
      Pids pids = co_await receive<Pids>();
      exit(owner.first, ExitReason::kill());
      co_await receive<Down>();
      while (alive(pids.child)) co_await otp::sleep(1ms);
    }
    auto started = co_await ChildProgram::start(server, shell("sleep 300"));
    const pid_t pid = std::get<ChildProgram>(started).identity().pid;
    started = io::SystemError{};  // the object is dropped
    while (alive(pid)) co_await otp::sleep(1ms);
  });
}

TEST_CASE("when the server is killed its programs are lost and gone", "[io][child][kill]") {
  on_threads([]() -> Async<void> {
    trap_exit(true);
    auto server = co_await start_server();
    auto started = co_await ChildProgram::start(server, shell("sleep 300"));
    auto& program = std::get<ChildProgram>(started);
    exit(server.pid(), ExitReason::kill());
    std::optional<ChildOutcome> outcome = co_await program.wait(10s);
    REQUIRE(outcome);
    CHECK(outcome->exit.how == io::ChildExit::How::lost);
    while (alive(program.identity().pid)) co_await otp::sleep(1ms);
  });
}

TEST_CASE("in a Simulator programs do what their script says", "[io][child]") {
  const io::SimulatedPrograms programs([](const ChildCommand& command) {
    io::ScriptedChild child{.runs_for = 1h, .output = "out of " + command.argv[0] + ": "};
    child.echoes_input = true;
    if (command.argv[0] == "none") child.fails = io::SystemError{ENOENT, "start"};
    if (command.argv[0] == "deaf") child.ignores_term = true;
    return child;
  });
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Simulator simulator(seed, io::simulated_options({}, {}, programs));
    simulator.run([]() -> Async<void> {
      auto server = co_await start_server();
      ChildOutcome outcome = co_await run(server, {.argv = {"cat"}}, {.input = "in"});
      CHECK(outcome.exit.success());
      CHECK(outcome.output.bytes == "out of cat: in");
      auto missing = co_await ChildProgram::start(server, {.argv = {"none"}});
      CHECK(std::get<io::SystemError>(missing).code == ENOENT);
      auto started = co_await ChildProgram::start(server, {.argv = {"deaf"}});
      auto& program = std::get<ChildProgram>(started);
      program.signal(SIGTERM);
      std::optional<ChildOutcome> late = co_await program.wait(1min);
      CHECK_FALSE(late);
      program.signal(SIGKILL);
      late = co_await program.wait(1min);
      REQUIRE(late);
      CHECK(late->exit.code == SIGKILL);
    });
  }
}
