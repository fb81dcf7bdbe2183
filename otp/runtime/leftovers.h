#pragma once

#include <cstdint>
#include <string>

#include "otp/runtime/letter.h"
#include "otp/runtime/process.h"

/// Words for what a System finds when it ends: what it is, whose it is, what it waits for.
namespace otp::internal {

/// `<0.7.1> (ledger)`: a pid and its name, if it has one.
std::string process_text(SystemImpl& system, uint64_t id);

/// A process, and what it waits for with the places of the co_awaits, the innermost first.
/// REQUIRES: the process's run right, or that nothing runs any more.
std::string describe(const Process& process);

/// A letter on its way to `target`.
std::string describe(const Letter& letter, uint64_t target);

/// Notices blocks of memory that outlive a System in which everything runs on one thread.
///
/// Made first and checked when everything of the System is gone. Only if no other System lived in
/// between can it tell whose the blocks are; else it says nothing.
class MemoryWatch {
 public:
  MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;
  ~MemoryWatch();

  /// Empty: nothing is left.
  std::string left_behind() const;

 private:
  uint64_t number_;
  bool alone_;
  size_t blocks_;
};

}  // namespace otp::internal
