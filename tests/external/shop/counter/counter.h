#pragma once

#include <cstdint>

#include "otp/base/result.h"

struct Increment {
  using Reply = int64_t;
  int64_t by = 1;
};

/// Counts. One process owns the number, so no lock guards it.
class Counter {
 public:
  struct Args {
    int64_t start = 0;
  };

  explicit Counter(Args args) : count_(args.start) {}
  int64_t handle_call(Increment msg) { return count_ += msg.by; }

 private:
  int64_t count_;
};
