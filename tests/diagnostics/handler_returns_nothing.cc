// EXPECT: handle_call must return the message's Reply
#include "tests/diagnostics/counter.h"

class Silent {
 public:
  void handle_call(Increment) {}
};

otp::Async<> client(otp::Server<Silent> silent) { co_await otp::call(silent, Increment{}); }
