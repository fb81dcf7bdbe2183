#pragma once

#include <cstdint>

#include "otp/behaviour/gen_server.h"

namespace counter {

struct Increment {
  using Reply = int64_t;
  int64_t by = 1;
};
struct Get {
  using Reply = int64_t;
};
struct Reset {};

/// Counts. One process owns the number, so no lock guards it.
class Counter {
 public:
  struct Args {
    int64_t start = 0;  // filled from YAML by field name
  };

  // Client API: runs in the caller's process.
  static auto increment(const otp::Server<Counter>& counter, int64_t by) {
    return otp::call(counter, Increment{.by = by});
  }
  static auto get(const otp::Server<Counter>& counter) { return otp::call(counter, Get{}); }
  static auto reset(const otp::Server<Counter>& counter) { return otp::cast(counter, Reset{}); }

  // Callbacks: run in the counter's process, one message at a time.
  explicit Counter(Args args) : count_(args.start) {}
  int64_t handle_call(Increment msg) { return count_ += msg.by; }
  int64_t handle_call(Get) { return count_; }
  void handle_cast(Reset) { count_ = 0; }

 private:
  int64_t count_;
};

}  // namespace counter
