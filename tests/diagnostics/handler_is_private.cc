// EXPECT: no public handle_cast that takes exactly this message
#include "tests/diagnostics/counter.h"

class Shy {
  void handle_cast(Reset) {}
};

void client(otp::Server<Shy> shy) { otp::cast(shy, Reset{}); }
