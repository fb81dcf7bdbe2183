// A machine that is suspended: FSM-020.
#include <catch2/catch.hpp>
#include <string>

#include "otp/behaviour/gen_statem.h"
#include "otp/behaviour/sys.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Work {
  using Reply = int;
};
struct Rest {};

class Worker {
 public:
  using Behaviour = GenStatem;
  enum class State { idle, busy };
  struct Data {
    int done = 0;
  };
  Data data_;

  State init() { return State::idle; }
  Transition<Worker> handle_event(In<State::idle>, Call<Work> call) {
    return next_state(State::busy).reply(call, ++data_.done).state_timeout(100ms, Rest{});
  }
  Transition<Worker> handle_event(In<State::busy>, Call<Work> call) {
    return keep_state().postpone(std::move(call));
  }
  Transition<Worker> handle_event(In<State::busy>, StateTimeout<Rest>) {
    return next_state(State::idle);
  }
};

}  // namespace

TEST_CASE("FSM-020 a suspended machine handles nothing but sys, and its timeout on resume",
          "[fsm]") {
  simulate(
      []() -> Async<void> {
        auto worker = (co_await start<Worker>()).or_exit();
        require(co_await call(worker, Work()) == 1, "work");
        require((co_await sys::suspend(worker)).ok(), "cannot suspend");
        auto caller = spawn_monitor([worker]() -> Async<void> {
          CallOptions options{.timeout = 1s};
          require(co_await call(worker, Work(), options) == 2, "another answer");
        });
        co_await otp::sleep(300ms);  // its state timeout is over
        auto state = co_await sys::get_state_as<Worker::State>(worker);
        require(state.ok() && state.value() == Worker::State::busy, "it did not wait");
        auto data = co_await sys::get_state_as<Worker::Data>(worker);
        require(data.ok() && data.value().done == 1, "the call was handled");
        auto text = co_await sys::get_state(worker.pid());
        require_equal(text.value(), "{busy, Data{done: 1}}");
        require((co_await sys::resume(worker)).ok(), "cannot resume");
        require_reason(co_await down_of(caller.second), "normal");
        state = co_await sys::get_state_as<Worker::State>(worker);
        require(state.ok() && state.value() == Worker::State::busy, "it is not at work");
        co_await stop(worker);
      },
      kFewRounds);
}
