// Hibernation, and requests whose response is waited for later.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "otp/behaviour/request.h"
#include "otp/behaviour/sys.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Ask {
  using Reply = int;
  int question = 0;
};
struct Answer {};
struct Crash {
  using Reply = void;
};
struct Rest {};
struct Seen {
  int answer = 0;
};

/// Answers an odd question at once and an even one when told to.
class Oracle {
 public:
  struct State {
    std::vector<int> spare{};
    int rested = 0;
    int heard = 0;
  };
  State state_;

  CallResult<int> handle_call(Ask msg, From<int> from) {
    ++state_.heard;
    if (msg.question % 2 == 1) return otp::reply(msg.question * 10);
    waiting_ = from;
    answer_ = msg.question * 10;
    return otp::noreply();
  }
  void handle_call(Crash) { throw Exit(ExitReason::atom("broken")); }
  void handle_cast(Answer) { otp::reply(waiting_, answer_); }
  CastResult handle_cast(Rest) {
    state_.spare.assign(100, 1);
    return otp::noreply().hibernate();
  }
  void hibernate() {
    ++state_.rested;
    state_.spare = {};
  }

 private:
  From<int> waiting_{};
  int answer_ = 0;
};

/// Asks the oracle and hears the response in handle_info.
class Pilgrim {
 public:
  struct Args {
    Server<Oracle> oracle{};
    Pid witness{};
  };
  explicit Pilgrim(Args args) : args_(args) {}
  void handle_cast(Rest) {
    Ask ask{7};
    request_ = send_request(args_.oracle, ask);
  }
  void handle_info(Response response) {
    RequestId<int> other{args_.oracle.pid(), make_ref()};
    if (check_response(response, other)) throw std::logic_error("it answers anything");
    auto answer = check_response(response, request_);
    Seen seen{answer ? answer->value() : -1};
    (void)otp::send(args_.witness, seen);
  }

 private:
  Args args_;
  RequestId<int> request_{};
};

Async<Server<Oracle>> oracle() {
  auto result = co_await start<Oracle>();
  co_return std::move(result).or_exit();
}

Ask ask(int question) { return Ask{question}; }

}  // namespace

TEST_CASE("GS-044 a hibernating server keeps its state and handles the next message", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    cast(server, Rest());
    auto status = (co_await sys::get_status(server)).or_exit();
    require(status.hibernating, "it does not hibernate");
    auto state = (co_await sys::get_state(server)).or_exit();
    require(state.rested == 1 && state.spare.empty(), "it released nothing");
    auto again = (co_await sys::get_status(server)).or_exit();
    require(again.hibernating, "a system query woke it");
    const int answer = co_await call(server, ask(3));
    require(answer == 30, "wrong answer");
    auto awake = (co_await sys::get_status(server)).or_exit();
    require(!awake.hibernating, "a message did not wake it");
    co_await stop(server);
  });
}

TEST_CASE("GS-045 the response to a request is received later", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    auto late = send_request(server, ask(2));
    auto early = send_request(server, ask(3));
    auto first = co_await receive_response(early);
    require(first.ok() && first.value() == 30, "wrong first answer");
    auto nothing = co_await wait_response(late, 0ms);
    require(!nothing.has_value(), "answered too early");
    cast(server, Answer());
    auto second = co_await wait_response(late);
    require(second.has_value() && second->value() == 20, "wrong second answer");
    co_await stop(server);
  });
}

TEST_CASE("GS-045 a server that ends or is not there gives an error as the response", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    const std::string pid = server.pid().to_string();
    auto kept = send_request(server, ask(2));
    auto crash = send_request(server, Crash{});
    auto queued = send_request(server, ask(3));
    auto first = co_await receive_response(kept);
    require_reason(first.error(), "{broken," + pid + "}");
    auto second = co_await receive_response(crash);
    require_reason(second.error(), "{broken," + pid + "}");
    auto third = co_await receive_response(queued);
    require_reason(third.error(), "{broken," + pid + "}");
    auto dead = send_request(server, ask(1));
    auto gone_already = co_await receive_response(dead);
    require_reason(gone_already.error(), "{noproc," + pid + "}");
    auto unknown = send_request(Name<Oracle>("nobody"), ask(1));
    auto noproc = co_await receive_response(unknown);
    require(first_of(noproc.error()).is_atom("noproc"), noproc.error().to_string());
    (void)logged();
  });
}

TEST_CASE("GS-045 a response that comes after receive_response gave up is dropped", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    auto request = send_request(server, ask(2));
    auto timeout = co_await receive_response(request, 0ms);
    require_reason(timeout.error(), "timeout");
    cast(server, Answer());
    co_await stop(server);
    co_await require_silence();
  });
}

TEST_CASE("GS-045 a response that races with the timeout leaves nothing behind", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    auto request = send_request(server, ask(1));
    co_await yield();
    auto result = co_await receive_response(request, 0ms);
    require(result.ok() || result.error() == ExitReason::timeout(), "neither of both");
    co_await stop(server);
    co_await require_silence();
  });
}

TEST_CASE("GS-045 a server hears a response in handle_info and checks whose it is", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    Pilgrim::Args args{.oracle = server, .witness = self()};
    auto pilgrim = (co_await start<Pilgrim>(args)).or_exit();
    cast(pilgrim, Rest());
    const Seen seen = co_await receive<Seen>();
    require(seen.answer == 70, "wrong answer");
    co_await stop(pilgrim);
    co_await stop(server);
  });
}

TEST_CASE("GS-046 responses of a collection come with their labels, in any order", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await oracle();
    RequestIds<int, std::string> requests;
    auto empty = co_await requests.wait();
    require_reason(empty.error(), "no_request");
    auto late = send_request(server, ask(2));
    require(requests.add(late, "late"), "refused");
    require(!requests.add(late, "again"), "the same request twice");
    require(requests.add(send_request(server, ask(3)), "early"), "refused");
    auto first = co_await requests.wait();
    require_equal(first.value().label, "early");
    require(first.value().result.value() == 30, "wrong answer");
    require(requests.size() == 1, "it was not taken out");
    auto none = co_await requests.wait(0ms);
    require_reason(none.error(), "timeout");
    cast(server, Answer());
    auto second = co_await requests.wait();
    require_equal(second.value().label, "late");
    require(requests.empty(), "it was not taken out");
    co_await stop(server);
  });
}
