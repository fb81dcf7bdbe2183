// EXPECT: a raw pointer would be shared by two processes
// EXPECT: buffer
#include "tests/diagnostics/counter.h"

struct Write {
  int64_t size = 0;
  char* buffer = nullptr;
};

class Writer {
 public:
  void handle_cast(Write) {}
};

void client(otp::Server<Writer> writer) { otp::cast(writer, Write{}); }
