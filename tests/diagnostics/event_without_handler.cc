// EXPECT: the state machine has no public handle_event that takes exactly this event
// EXPECT: Cast<Knock>
#include "tests/diagnostics/door.h"

void client(otp::Server<Door> door) { otp::cast(door, Knock{}); }
