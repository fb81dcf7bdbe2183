// EXPECT: this message has a Reply: it is a call, use otp::call
#include "tests/diagnostics/counter.h"

void client(otp::Server<Counter> counter) { otp::cast(counter, Increment{}); }
