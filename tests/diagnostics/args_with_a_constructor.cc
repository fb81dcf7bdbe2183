// EXPECT: this type cannot be written in a configuration: use a plain struct
#include "otp/config/declarations.h"

struct Worker {
  struct Args {
    explicit Args(int size) : size(size) {}
    int size;
  };
};

otp::config::ServerDecl worker = otp::config::describe_server<Worker>();
