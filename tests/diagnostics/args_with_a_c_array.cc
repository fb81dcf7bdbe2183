// EXPECT: a C array cannot be configured: use a std::vector
// EXPECT: sizes
#include "otp/config/declarations.h"

struct Worker {
  struct Args {
    int depth = 1;
    int sizes[3] = {};
  };
};

otp::config::ServerDecl worker = otp::config::describe_server<Worker>();
