#pragma once

#include "counter/counter.h"

namespace shop {

/// Opens the till: adds two to what is in it when the shop starts.
class Cashier {
 public:
  struct Args {
    otp::Required<otp::Name<Counter>> till;
  };

  explicit Cashier(Args args) : till_(args.till) {}
  otp::Async<otp::Init> init() {
    int64_t sum = co_await Counter::increment(till_, 2);
    if (sum != 42) co_return otp::stop(otp::ExitReason::atom("wrong_sum"));
    co_return otp::ok();
  }

 private:
  otp::Name<Counter> till_;
};

}  // namespace shop
