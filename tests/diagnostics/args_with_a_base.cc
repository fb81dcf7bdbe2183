// EXPECT: a struct with a base class has no list of fields: make the base a field
#include "otp/config/declarations.h"

struct Common {
  int size = 1;
};

struct Worker {
  struct Args : Common {
    int depth = 1;
  };
};

otp::config::ServerDecl worker = otp::config::describe_server<Worker>();
