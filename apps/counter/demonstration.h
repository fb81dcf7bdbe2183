#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "apps/counter/counter.h"
#include "otp/async/async.h"
#include "otp/config/required.h"

namespace counter {

/// What was counted and what should have been.
struct Tally {
  int64_t expected = 0;
  int64_t actual = 0;

  int64_t lost() const { return expected - actual; }
  /// `actor: expected 40000 actual 40000 lost 0`
  std::string line(const std::string& what) const {
    return what + ": expected " + std::to_string(expected) + " actual " + std::to_string(actual) +
           " lost " + std::to_string(lost());
  }
};

/// `writers` processes add 1 to a variable that they share, `increments` times each: read it, let
/// the others run, write it back. What another one wrote in between is lost. The atomic only keeps
/// this from being undefined behaviour; it guards nothing.
otp::Async<Tally> count_shared(int64_t writers, int64_t increments);

/// The same processes ask a Counter server instead. It handles one message at a time: nothing is
/// lost.
otp::Async<Tally> count_with_server(otp::Server<Counter> server, int64_t writers,
                                    int64_t increments);

/// Runs both once its tree is up, prints a line for each, and ends.
class Demonstration {
 public:
  struct Args {
    otp::Required<otp::Name<Counter>> counter{};
    int64_t writers = 8;
    int64_t increments = 5000;
  };
  struct Run {};

  explicit Demonstration(Args args) : args_(std::move(args)) {}
  otp::Init init() { return otp::ok().then_continue(Run{}); }
  otp::Async<otp::CastResult> handle_continue(Run);

 private:
  Args args_;
};

}  // namespace counter
