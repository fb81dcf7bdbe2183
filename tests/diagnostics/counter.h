#pragma once

#include <cstdint>

#include "otp/behaviour/gen_server.h"

struct Increment {
  using Reply = int64_t;
  int64_t by = 1;
};
struct Reset {};
struct Unknown {
  using Reply = int64_t;
};
struct UnknownCast {};

class Counter {
 public:
  struct Args {
    int64_t start = 0;
  };
  explicit Counter(Args args) : count_(args.start) {}
  int64_t handle_call(Increment msg) { return count_ += msg.by; }
  void handle_cast(Reset) { count_ = 0; }

 private:
  int64_t count_;
};
