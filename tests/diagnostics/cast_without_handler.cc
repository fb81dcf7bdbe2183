// EXPECT: no public handle_cast that takes exactly this message
#include "tests/diagnostics/counter.h"

void client(otp::Server<Counter> counter) { otp::cast(counter, UnknownCast{}); }
