// EXPECT: this type cannot be written in a configuration
// EXPECT: Worker::Args, otp::internal::Field<Worker::Args, &unbuilt.value.thread>
#include <thread>

#include "otp/config/declarations.h"

struct Worker {
  struct Args {
    int size = 1;
    std::thread thread;
  };
};

otp::config::ServerDecl worker = otp::config::describe_server<Worker>();
