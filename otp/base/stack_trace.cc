#include "otp/base/stack_trace.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

extern "C" void* __libc_stack_end;  // set by the dynamic loader: where main's stack began

namespace otp {
namespace {

constexpr uintptr_t kFarthestFrame = uintptr_t{64} << 20;  // a larger step is a broken pointer

// Whether the kernel can read 8 bytes there. rt_sigprocmask copies the new mask in before it looks
// at `how`, so that a bad address gives EFAULT and a good one EINVAL, and nothing changes.
OTP_UNINSTRUMENTED bool readable(uintptr_t address) noexcept {
  const int saved = errno;
  const bool fault = syscall(SYS_rt_sigprocmask, ~0, address, nullptr, 8) == -1 && errno == EFAULT;
  errno = saved;
  return !fault;
}

// Whether an address lies in a loaded module, with the last answer as a cache. _dl_find_object
// takes no lock and may be used in signal handlers.
class ModuleCheck {
 public:
  OTP_UNINSTRUMENTED ModuleCheck() noexcept {}  // one that the compiler writes is instrumented
  OTP_UNINSTRUMENTED bool contains(uintptr_t address) noexcept {
    if (address >= begin_ && address < end_) return true;
    dl_find_object found;
    if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return false;
    begin_ = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
    end_ = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
    return true;
  }

 private:
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
};

struct UnwindState {
  StackTrace* out;
  size_t skip;
};

_Unwind_Reason_Code add_unwound(_Unwind_Context* context, void* argument) {
  auto* state = static_cast<UnwindState*>(argument);
  if (state->skip > 0) {
    --state->skip;
    return _URC_NO_REASON;
  }
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  state->out->push(address);
  return state->out->truncated() ? _URC_END_OF_STACK : _URC_NO_REASON;
}

uintptr_t find_stack_end() noexcept {
  if (syscall(SYS_gettid) == getpid()) return reinterpret_cast<uintptr_t>(__libc_stack_end);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 1;
  void* begin = nullptr;
  size_t bytes = 0;
  const int error = pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  return error != 0 ? 1 : reinterpret_cast<uintptr_t>(begin) + bytes;
}

std::string base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

void append_hex(std::string* out, uintptr_t value) {
  char digits[2 * sizeof value];
  size_t count = 0;
  do {
    digits[count++] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value != 0);
  *out += "0x";
  while (count > 0) *out += digits[--count];
}

StackFrame resolve_address(uintptr_t address) {
  StackFrame frame;
  frame.address = address;
  Dl_info info;
  // A return address may be the first byte after a function whose last act is a call.
  const uintptr_t inside = address - 1;
  if (dladdr(reinterpret_cast<void*>(inside), &info) == 0) return frame;
  if (info.dli_fname != nullptr) frame.module = base_name(info.dli_fname);
  frame.module_offset = address - reinterpret_cast<uintptr_t>(info.dli_fbase);
  if (info.dli_sname != nullptr) {
    frame.function = demangle(info.dli_sname);
    frame.offset = address - reinterpret_cast<uintptr_t>(info.dli_saddr);
  }
  return frame;
}

}  // namespace

namespace internal {

OTP_UNINSTRUMENTED void walk_frames(uintptr_t pc, uintptr_t frame, uintptr_t stack_end,
                                    StackTrace* out) noexcept {
  ModuleCheck modules;
  if (pc != 0) out->push(pc);
  uintptr_t lowest = 0;
  while (!out->truncated()) {
    // A frame is two words: the caller's frame pointer, then the return address.
    if (frame % sizeof(uintptr_t) != 0 || frame == 0 || frame < lowest) return;
    if (stack_end != 0) {
      if (frame > stack_end - 2 * sizeof(uintptr_t)) return;
    } else if (!readable(frame) || !readable(frame + sizeof(uintptr_t))) {
      return;
    }
    const auto* words = reinterpret_cast<const uintptr_t*>(frame);
    const uintptr_t caller = words[0];
    const uintptr_t address = words[1];
    if (!modules.contains(address)) return;
    out->push(address);
    if (caller - frame > kFarthestFrame) return;
    lowest = frame + 2 * sizeof(uintptr_t);
    frame = caller;
  }
}

uintptr_t this_thread_stack_end() noexcept {
  static constinit thread_local uintptr_t stack_end = 0;
  if (stack_end == 0) stack_end = find_stack_end();
  return stack_end;
}

}  // namespace internal

// Its own frame is on the stack below all others, so everything from here to the end is mapped.
[[gnu::noinline]] StackTrace StackTrace::capture(size_t skip) noexcept {
  StackTrace trace;
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const uintptr_t end = internal::this_thread_stack_end();
  if (frame >= end) {  // on a stack of the user's own: one address is all that is safe to read
    trace.push(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
    return trace;
  }
  internal::walk_frames(0, frame, end, &trace);
  if (skip > 0) {
    const size_t kept = skip < trace.size_ ? trace.size_ - skip : 0;
    std::memmove(trace.addresses_.data(), trace.addresses_.data() + (trace.size_ - kept),
                 kept * sizeof(uintptr_t));
    trace.size_ = static_cast<uint32_t>(kept);
  }
  return trace;
}

[[gnu::noinline]] StackTrace StackTrace::capture_by_tables(size_t skip) noexcept {
  StackTrace trace;
  UnwindState state{&trace, skip + 1};  // this function itself is the first
  _Unwind_Backtrace(add_unwound, &state);
  return trace;
}

OTP_UNINSTRUMENTED void StackTrace::clear() noexcept {
  size_ = 0;
  truncated_ = false;
}

OTP_UNINSTRUMENTED void StackTrace::push(uintptr_t address) noexcept {
  if (size_ < kMaxFrames) {
    addresses_[size_++] = address;
  } else {
    truncated_ = true;
  }
}

std::vector<StackFrame> StackTrace::resolve() const {
  std::vector<StackFrame> frames;
  frames.reserve(size_);
  for (uintptr_t address : addresses()) frames.push_back(resolve_address(address));
  return frames;
}

std::string StackTrace::to_string() const {
  std::string text;
  size_t number = 0;
  for (const StackFrame& frame : resolve()) {
    text += "  #" + std::to_string(number++) + " " + frame.to_string() + "\n";
  }
  if (truncated_) text += "  (deeper frames are not kept)\n";
  return text;
}

std::string StackFrame::to_string() const {
  std::string text = function;
  if (!function.empty()) {
    text += "+";
    append_hex(&text, offset);
    text += " (";
  }
  if (module.empty()) {
    append_hex(&text, address);
  } else {
    text += module + "+";
    append_hex(&text, module_offset);
  }
  if (!function.empty()) text += ")";
  return text;
}

std::string demangle(const char* symbol, size_t max_bytes) {
  int status = 0;
  char* readable_name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string name = status == 0 && readable_name != nullptr ? readable_name : symbol;
  std::free(readable_name);
  if (name.size() > max_bytes) {
    name.resize(max_bytes);
    name += "...";
  }
  return name;
}

}  // namespace otp
