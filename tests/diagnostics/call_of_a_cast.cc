// EXPECT: this message has no Reply: it is a cast, use otp::cast
#include "tests/diagnostics/counter.h"

otp::Async<> client(otp::Server<Counter> counter) { co_await otp::call(counter, Reset{}); }
