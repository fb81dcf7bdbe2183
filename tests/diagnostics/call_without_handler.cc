// EXPECT: no public handle_call that takes exactly this message
#include "tests/diagnostics/counter.h"

otp::Async<> client(otp::Server<Counter> counter) { co_await otp::call(counter, Unknown{}); }
