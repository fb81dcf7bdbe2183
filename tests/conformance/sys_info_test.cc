#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "otp/runtime/process_info.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Ping {
  int number = 0;
};
struct Done {};
struct Ask {
  using Reply = int;
  int question = 0;
};

class Echo {
 public:
  Async<int> handle_call(Ask msg) {
    co_await otp::sleep(1h);
    co_return msg.question;
  }
  void handle_info(Ping) {}
};

Async<void> wait_for_done() { (void)co_await receive<Done>(); }

bool has(const std::vector<Pid>& pids, Pid pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

Async<ProcessInfo> info_of(Pid pid) {
  auto info = co_await process_info(pid);
  require(info.has_value(), "there is no such process");
  co_return std::move(*info);
}

}  // namespace

TEST_CASE("SYS-012 process_info tells queue length and messages, the oldest first", "[sys]") {
  everywhere([]() -> Async<void> {
    Pid pid = spawn(&wait_for_done);
    for (int number = 1; number <= 3; ++number) {
      Ping ping{number};
      (void)otp::send(pid, ping);
    }
    const ProcessInfo info = co_await info_of(pid);
    require(info.pid == pid, "another process");
    require(info.message_queue_len == 3, "wrong length");
    const std::string from = " from " + self().to_string();
    require(info.messages.size() == 3, "wrong messages");
    require_equal(info.messages[0], "Ping{number: 1}" + from);
    require_equal(info.messages[2], "Ping{number: 3}" + from);
    const auto few = co_await process_info(pid, {.messages_max = 1});
    require(few->messages.size() == 1 && few->message_queue_len == 3, "messages_max is ignored");
    co_await end(pid);
  });
}

TEST_CASE("SYS-012 process_info tells links and monitors, both ways", "[sys]") {
  everywhere([]() -> Async<void> {
    trap_exit(true);
    Pid linked = spawn_link(&wait_for_done);
    Pid watched = spawn(&wait_for_done);
    const Reference reference = monitor(watched);
    const ProcessInfo mine = co_await info_of(self());
    require(has(mine.links, linked), "the link is missing");
    require(has(mine.monitors, watched), "the monitor is missing");
    require(mine.status == ProcessStatus::running, "not running");
    require(mine.trap_exit, "trap_exit is missing");
    const ProcessInfo theirs = co_await info_of(watched);
    require(theirs.monitored_by.size() == 1 && has(theirs.monitored_by, self()), "monitored_by");
    const ProcessInfo child = co_await info_of(linked);
    require(child.links.size() == 1 && has(child.links, self()), "links of the child");
    require(!child.ancestors.empty() && child.ancestors.front() == self(), "no ancestors");
    demonitor(reference);
    unlink(linked);
    const ProcessInfo after = co_await info_of(linked);
    require(after.links.empty(), "the link is left");
    co_await end(linked);
    co_await end(watched);
  });
}

TEST_CASE("SYS-012 process_info tells name, status and what is waited for", "[sys]") {
  everywhere([]() -> Async<void> {
    Pid pid = spawn(&wait_for_done);
    require(register_name("worker", pid), "the name is taken");
    co_await yield();
    const ProcessInfo info = co_await info_of(pid);
    require_equal(info.registered_name, "worker");
    require(info.status == ProcessStatus::waiting || info.status == ProcessStatus::runnable,
            "wrong status");
    co_await end(pid);
    auto server = (co_await start<Echo>()).or_exit();
    const ProcessInfo idle = co_await info_of(server.pid());
    require(idle.status == ProcessStatus::waiting, "an idle server does not wait");
    require_equal(idle.initial_call, "Echo");
    require(idle.await_stack.empty(), "an idle server is in no coroutine");
    co_await stop(server);
  });
}

TEST_CASE("SYS-012 process_info shows where a process awaits, while it does", "[sys]") {
  simulate(
      []() -> Async<void> {
        auto server = (co_await start<Echo>()).or_exit();
        auto caller = [](Server<Echo> echo) -> Async<void> {
          Ask ask{1};
          (void)co_await try_call(echo, ask, {.timeout = infinity});
        };
        Pid waiting = spawn(caller, server);
        co_await otp::sleep(1ms);
        const ProcessInfo info = co_await info_of(server.pid());
        require(info.status == ProcessStatus::waiting, "not waiting");
        require_equal(info.waiting_for, "sleep");
        require(info.await_stack.size() >= 2, "no stack");
        const std::string stack = info.await_stack.to_string();
        require(stack.find("sys_info_test.cc:") != std::string::npos, stack);
        require(stack.find("handle_call") != std::string::npos, stack);
        const ProcessInfo other = co_await info_of(waiting);
        require_equal(other.waiting_for, "reply");
        co_await end(server.pid());
        co_await gone(waiting);
      },
      kFewRounds);
}

TEST_CASE("SYS-012 of a dead process there is none", "[sys]") {
  everywhere([]() -> Async<void> {
    Pid pid = spawn(&wait_for_done);
    co_await end(pid);
    auto info = co_await process_info(pid);
    require(!info.has_value(), "it tells of the dead");
    auto nobody = co_await process_info(Pid());
    require(!nobody.has_value(), "it tells of nobody");
    co_await require_silence();
  });
}

TEST_CASE("SYS-012 a process that ends while it is asked gives none or its last snapshot",
          "[sys]") {
  everywhere([]() -> Async<void> {
    Pid pid = spawn(&wait_for_done);
    (void)otp::send(pid, Done());
    auto info = co_await process_info(pid);
    require(!info.has_value() || info->pid == pid, "another process answered");
    co_await gone(pid);
    co_await require_silence();
  });
}
