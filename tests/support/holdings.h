#pragma once

#include <stdexcept>
#include <string>

#include "otp/runtime/runtime.h"

namespace otp::testing {

/// What a process holds: for "everything is as it was before".
struct Holdings {
  size_t messages = 0;
  size_t links = 0;
  size_t monitors = 0;
  friend bool operator==(const Holdings&, const Holdings&) = default;

  std::string to_string() const {
    return std::to_string(messages) + " messages, " + std::to_string(links) + " links, " +
           std::to_string(monitors) + " monitors";
  }
};

inline Holdings holdings() {
  using namespace internal;
  LibraryScope scope(env());
  Process& process = self_process();
  process.drain_now();
  Process::Relations* relations = process.relations_if_any();
  if (relations == nullptr) return {process.queue_length(), 0, 0};
  return {process.queue_length(), relations->links.size(), relations->monitors.size()};
}

/// Lets everything that is under way arrive, then throws unless `before` still holds.
inline Async<void> require_nothing_left(Holdings before) {
  // On threads acknowledgements come when the other core gets its turn.
  const int64_t end = internal::env().system->now() + 10'000'000'000;
  if (internal::env().system->simulated()) co_await otp::sleep(std::chrono::milliseconds(5));
  while (holdings() != before && internal::env().system->now() < end) co_await otp::yield();
  Holdings now = holdings();
  if (now == before) co_return;
  throw std::logic_error("left: " + now.to_string() + ", was: " + before.to_string());
}

}  // namespace otp::testing
