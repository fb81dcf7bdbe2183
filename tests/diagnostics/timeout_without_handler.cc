// EXPECT: the state machine has no public handle_event that takes exactly this event
// EXPECT: StateTimeout<Relock>
#include "tests/diagnostics/door.h"

otp::Transition<Door> opened() {
  return otp::next_state(Door::State::open).state_timeout(std::chrono::seconds(10), Relock{});
}
