#include "tests/conformance/scene.h"

namespace otp::scene {

using namespace std::chrono_literals;

namespace {

// The tests of one binary run one after the other.
Body played = nullptr;

Async<void> play() {
  auto scene = spawn_monitor(played);
  const ExitReason reason = co_await testing::down_of(scene.second);
  require(reason.is_normal(), reason.to_string());
  // What the scene started may take its time to end, more than worlds.h waits.
  internal::SystemImpl& system = *internal::env().system;
  for (int i = 0; simulated() && i < 600 && system.process_count() > 1; ++i) {
    co_await otp::sleep(100ms);
  }
}

}  // namespace

void simulate(Body body, uint64_t seeds) {
  played = body;
  testing::simulate(play, seeds);
}

void on_threads(Body body, uint64_t rounds) {
  played = body;
  testing::on_threads(play, rounds);
}

void everywhere(Body body, uint64_t rounds) {
  simulate(body, rounds);
  on_threads(body, rounds);
}

Duration ms(int64_t milliseconds) {
  return simulated() ? Duration(milliseconds * 1ms) : Duration(milliseconds * 1us);
}

}  // namespace otp::scene
