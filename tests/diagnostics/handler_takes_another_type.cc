// EXPECT: no public handle_call that takes exactly this message
#include "tests/diagnostics/counter.h"

struct Add {
  using Reply = double;
  Add() = default;
  Add(Increment) {}
};

// Add is made from Increment, but a callback counts only for exactly its own message.
class Wide {
 public:
  double handle_call(Add) { return 0; }
};

otp::Async<> client(otp::Server<Wide> wide) { co_await otp::call(wide, Increment{}); }
