#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace otp {

/// Where the coroutines of one process await each other, the innermost first: what a machine stack
/// cannot show, as a resumed coroutine's has lost its awaiters. Each line is the last co_await of
/// one coroutine. A plain value.
class AwaitStack {
 public:
  static constexpr size_t kMaxFrames = 16;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// There were more than kMaxFrames; the outermost are missing.
  bool truncated() const { return truncated_; }
  const std::source_location& operator[](size_t index) const { return sites_[index]; }
  void push(const std::source_location& site) {
    if (size_ == kMaxFrames) {
      truncated_ = true;
    } else {
      sites_[size_++] = site;
    }
  }

  /// One line per frame, each `  #0 bank/ledger.cc:41 otp::Async<int> bank::Ledger::total()`.
  std::string to_string() const;

 private:
  std::array<std::source_location, kMaxFrames> sites_;
  uint32_t size_ = 0;
  bool truncated_ = false;
};

}  // namespace otp
