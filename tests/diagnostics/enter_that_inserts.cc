// EXPECT: an enter call can neither postpone nor insert events
#include "tests/diagnostics/door.h"

otp::Entered<Door> entered() { return otp::keep_state().next_event(otp::Internal(Relock{})); }
