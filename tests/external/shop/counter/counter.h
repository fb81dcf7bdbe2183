#pragma once

#include <cstdint>

#include "otp/application/run.h"

namespace shop {

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

  // Client API: runs in the caller's process.
  static auto increment(otp::Server<Counter> counter, int64_t by) {
    return otp::call(counter, Increment{.by = by});
  }

  // Callbacks: run in the counter's process, one message at a time.
  explicit Counter(Args args) : count_(args.start) {}
  int64_t handle_call(Increment msg) { return count_ += msg.by; }

 private:
  int64_t count_;
};

}  // namespace shop
