// EXPECT: handle_call must return the message's Reply
#include "tests/diagnostics/counter.h"

class Wrong {
 public:
  bool handle_call(Increment) { return true; }
};

otp::Async<> client(otp::Server<Wrong> wrong) { co_await otp::call(wrong, Increment{}); }
