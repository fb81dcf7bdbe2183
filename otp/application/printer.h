#pragma once

#include <chrono>
#include <memory>
#include <string>

/// Writes to standard output from a thread of its own, so that a reader who stalls or has gone
/// holds up nobody.
namespace otp::internal {

class Printer {
 public:
  /// Begins to write `text`. Call it once. Without threads to be had nothing is written.
  void print(std::string text);
  /// Waits until it is written, at most until `within` is over. What is not by then may never be.
  void finish(std::chrono::milliseconds within);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace otp::internal
