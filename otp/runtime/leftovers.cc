#include "otp/runtime/leftovers.h"

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "otp/base/atomic.h"
#include "otp/base/pool.h"
#include "otp/base/stack_trace.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

namespace {

std::string_view name_of(Process::Wait wait) {
  switch (wait) {
    case Process::Wait::none: return "nothing";
    case Process::Wait::yield: return "its turn";
    case Process::Wait::reply: return "a reply";
    case Process::Wait::receive: return "a message it wants";
    case Process::Wait::sleep: return "the end of a sleep";
    case Process::Wait::operation: return "an operation outside";
    case Process::Wait::message: return "a message";
    case Process::Wait::condition: return "a condition";
  }
  return "?";
}

std::string_view name_of(LetterKind kind) {
  constexpr std::array<std::string_view, 17> kNames{
      "start",  "message",   "call",   "cast",       "system",  "reply",
      "result", "link",      "unlink", "unlink_ack", "monitor", "demonitor",
      "exit",   "link_exit", "down",   "timer",      "wake"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "?";
}

constexpr size_t kBlocksShown = 10;
constinit Atomic<uint64_t> systems_made{0};
constinit Atomic<uint64_t> systems_alive{0};

/// What the dynamic symbol table knows of an address: empty if it lies in no module.
std::string symbol_at(uintptr_t address) {
  StackTrace one;
  one.push(address);
  const std::vector<StackFrame> frames = one.resolve();
  return frames.empty() || frames[0].module.empty() ? std::string() : frames[0].to_string();
}

// A frame knows its own address, a letter its size; anything else is told by its first word, which
// in an object with virtual functions names the class.
std::string describe_block(const UsedBlock& block) {
  const auto* bytes = static_cast<const std::byte*>(block.memory);
  const auto* frame = reinterpret_cast<const PromiseBase*>(bytes + 2 * sizeof(void*));
  uintptr_t word;
  std::memcpy(&word, bytes, sizeof word);
  if (frame->handle.address() == block.memory) {
    std::string text = "a frame of " + symbol_at(word);
    if (frame->await_site.line() == 0) return text;
    return text + " that waits at " + frame->await_site.file_name() + ":" +
           std::to_string(frame->await_site.line());
  }
  const auto* letter = static_cast<const Letter*>(block.memory);
  if (letter->block * kPoolStep == block.bytes && letter->kind <= LetterKind::wake &&
      (letter->operation == nullptr ||
       !symbol_at(reinterpret_cast<uintptr_t>(letter->operation)).empty())) {
    return "a letter: " + describe(*letter, static_cast<uint64_t>(letter->generation) << 32);
  }
  std::string symbol = symbol_at(word);
  return std::to_string(block.bytes) + " bytes" +
         (symbol.empty() ? std::string() : ", an object with " + symbol);
}

}  // namespace

MemoryWatch::MemoryWatch()
    : number_(systems_made.fetch_add(1, relaxed)),
      alone_(systems_alive.fetch_add(1, relaxed) == 0),
      blocks_(alone_ ? pool_blocks_in_use() : 0) {}

MemoryWatch::~MemoryWatch() { systems_alive.fetch_sub(1, relaxed); }

std::string MemoryWatch::left_behind() const {
  if (!alone_ || systems_made.load(relaxed) != number_ + 1) return {};
  const size_t now = pool_blocks_in_use();
  if (now <= blocks_) return {};
  std::string text = std::to_string(now - blocks_) + " blocks of memory; in use are";
  std::vector<UsedBlock> used = pool_used_blocks();
  for (size_t i = 0; i < used.size() && i < kBlocksShown; ++i) {
    text += "\n    " + describe_block(used[i]);
  }
  if (used.size() > kBlocksShown) {
    text += "\n    and " + std::to_string(used.size() - kBlocksShown) + " more";
  }
  return text;
}

std::string process_text(SystemImpl& system, uint64_t id) {
  std::string text = Pid{0, id}.to_string();
  if (std::string name = system.names().name_of(id); !name.empty()) text += " (" + name + ")";
  return text;
}

size_t Process::pending_operations() const {
  size_t count = 0;
  for (PendingOperation* each = operations_; each != nullptr; each = each->next) ++count;
  return count;
}

std::string describe(const Process& process) {
  std::string text = process_text(process.system(), process.id());
  text += ", ";
  text += process.label();
  if (process.exiting()) {
    text += ", exiting with " + process.exit_reason().to_string() + ": waits for " +
            std::to_string(process.pending_operations()) + " operations outside to end";
  } else {
    text += ", waits for ";
    text += name_of(process.waits_for());
  }
  for (const PromiseBase* frame = process.driver().top(); frame; frame = frame->parent) {
    const std::source_location& site = frame->await_site;
    if (site.line() == 0) continue;
    text += std::string(frame == process.driver().top() ? " at " : ", from ") + site.file_name() +
            ":" + std::to_string(site.line()) + " in " + site.function_name();
  }
  return text;
}

std::string describe(const Letter& letter, uint64_t target) {
  std::string text(name_of(letter.kind));
  if (letter.operation != nullptr) text += " " + std::string(letter.operation->type->name);
  text += " from " + (letter.sender == 0 ? "nobody" : Pid{0, letter.sender}.to_string());
  text += " to " + Pid{0, target}.to_string();
  return text;
}

}  // namespace otp::internal
