#include "otp/base/stack_trace.h"

#include <pthread.h>
#include <unistd.h>
#include <atomic>
#include <catch2/catch.hpp>
#include <coroutine>
#include <csignal>
#include <cstring>
#include <exception>
#include <semaphore>
#include <thread>

using namespace std::chrono_literals;

// Not static and in a namespace with a name: functions that -rdynamic shows.
namespace stack_trace_test {

[[gnu::noinline]] otp::StackTrace leaf() {
  otp::StackTrace stack = otp::StackTrace::capture();
  asm volatile("" : : : "memory");
  return stack;
}

[[gnu::noinline]] otp::StackTrace middle() {
  otp::StackTrace stack = leaf();
  asm volatile("" : : : "memory");
  return stack;
}

[[gnu::noinline]] otp::StackTrace recurse(int depth) {
  otp::StackTrace stack = depth == 0 ? otp::StackTrace::capture() : recurse(depth - 1);
  asm volatile("" : : : "memory");
  return stack;
}

struct Resumable {
  struct promise_type {
    Resumable get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Resumable coroutine(otp::StackTrace* out) {
  co_await std::suspend_always();
  *out = middle();
}

[[gnu::noinline]] void resume_on_this_thread(Resumable resumable) {
  resumable.handle.resume();
  asm volatile("" : : : "memory");
}

// Spins in user code, or waits in libc, until told to stop.
[[gnu::noinline]] void spin(std::atomic<pid_t>* tid, std::atomic<bool>* stop) {
  tid->store(gettid());
  tid->notify_one();
  while (!stop->load(std::memory_order_relaxed)) asm volatile("" : : : "memory");
}

[[gnu::noinline]] void sleep_in_libc(std::atomic<pid_t>* tid, int fd) {
  tid->store(gettid());
  tid->notify_one();
  char byte;
  while (read(fd, &byte, 1) < 0) continue;
  asm volatile("" : : : "memory");
}

// Mostly in the vDSO, which the unwind tables of no file on disk describe.
[[gnu::noinline]] void read_the_clock(std::atomic<pid_t>* tid, std::atomic<bool>* stop) {
  tid->store(gettid());
  tid->notify_one();
  while (!stop->load(std::memory_order_relaxed)) (void)std::chrono::steady_clock::now();
}

#if defined(__x86_64__)
// Like the linker's stubs: no unwind tables, no frame. Returns when `*stop` is not 0. Its caller is
// like libstdc++ and libc: unwind tables, and no frame pointer.
asm(".text\n.type stack_trace_test_stub,@function\nstack_trace_test_stub:\n"
    "1: cmpb $0, (%rdi)\n  je 1b\n  ret\n.size stack_trace_test_stub, .-stack_trace_test_stub\n"
    ".type stack_trace_test_library,@function\nstack_trace_test_library:\n  .cfi_startproc\n"
    "  sub $8, %rsp\n  .cfi_adjust_cfa_offset 8\n  call stack_trace_test_stub\n"
    "  add $8, %rsp\n  .cfi_adjust_cfa_offset -8\n  ret\n  .cfi_endproc\n"
    ".size stack_trace_test_library, .-stack_trace_test_library\n");
extern "C" void stack_trace_test_library(const std::atomic<bool>* stop);

[[gnu::noinline]] void wait_in_a_stub(std::atomic<pid_t>* tid, std::atomic<bool>* stop) {
  tid->store(gettid());
  tid->notify_one();
  stack_trace_test_library(stop);
  asm volatile("" : : : "memory");
}
#endif

}  // namespace stack_trace_test

using namespace stack_trace_test;

TEST_CASE("a stack names the functions from the innermost outwards", "[stack_trace]") {
  const otp::StackTrace stack = middle();
  const auto frames = stack.resolve();
  REQUIRE(frames.size() >= 3);
  CHECK(frames[0].function == "stack_trace_test::leaf()");
  CHECK(frames[1].function == "stack_trace_test::middle()");
  CHECK_FALSE(frames[0].module.empty());
  CHECK_THAT(stack.to_string(), Catch::Contains("  #1 stack_trace_test::middle()+0x"));
}

TEST_CASE("skipped frames are left out, all of them too", "[stack_trace]") {
  const auto whole = otp::StackTrace::capture(0);
  const auto skipped = otp::StackTrace::capture(1);
  CHECK(skipped.size() == whole.size() - 1);
  CHECK(skipped.addresses().back() == whole.addresses().back());
  CHECK(otp::StackTrace::capture(1000).empty());
}

TEST_CASE("a deep stack keeps the innermost frames and says so", "[stack_trace]") {
  const auto stack = recurse(100);
  CHECK(stack.size() == otp::StackTrace::kMaxFrames);
  CHECK(stack.truncated());
  CHECK_THAT(stack.to_string(), Catch::Contains("deeper frames are not kept"));
}

TEST_CASE("unwind tables give the same functions as frame pointers", "[stack_trace]") {
  const auto stack = otp::StackTrace::capture_by_tables();
  const auto frames = stack.resolve();
  REQUIRE(frames.size() >= 3);
  CHECK(frames.back().module_offset != 0);
  CHECK(frames[0].module == otp::StackTrace::capture().resolve()[0].module);
}

TEST_CASE("a coroutine resumed on a thread shows the frames of the thread", "[stack_trace]") {
  otp::StackTrace stack;
  Resumable resumable = coroutine(&stack);
  resumable.handle.resume();
  std::thread([&] { resume_on_this_thread(resumable); }).join();
  REQUIRE(resumable.handle.done());
  resumable.handle.destroy();
  const std::string text = stack.to_string();
  CHECK_THAT(text, Catch::Contains("stack_trace_test::middle()"));
  CHECK_THAT(text, Catch::Contains("stack_trace_test::resume_on_this_thread"));
}

TEST_CASE("a broken frame pointer ends the walk and never faults", "[stack_trace]") {
  const uintptr_t end = otp::internal::this_thread_stack_end();
  uintptr_t chain[4] = {0x10, 0, 0, 0};
  const auto inside = reinterpret_cast<uintptr_t>(&chain[0]);
  const uintptr_t bad[] = {0,   1,       8,      0xdeadbeef, ~uintptr_t{0}, ~uintptr_t{7},
                           end, end - 8, inside, inside + 1};
  for (uintptr_t frame : bad) {
    for (uintptr_t limit : {end, uintptr_t{0}}) {
      // With a limit, the caller vouches that the first frame is above its own.
      if (limit != 0 && frame < inside) continue;
      otp::StackTrace stack;
      otp::internal::walk_frames(0, frame, limit, &stack);
      CHECK(stack.empty());
    }
  }
  // A loop: a frame that is its own caller.
  chain[0] = inside;
  chain[1] = reinterpret_cast<uintptr_t>(&otp::demangle) + 1;
  otp::StackTrace stack;
  otp::internal::walk_frames(0, inside, 0, &stack);
  CHECK(stack.size() == 1);
}

TEST_CASE("the stack of a thread that spins can be taken", "[stack_trace][thread]") {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] { spin(&tid, &stop); });
  tid.wait(0);
  const auto stack = otp::capture_thread(tid.load(), 10s);
  stop.store(true);
  thread.join();
  REQUIRE(stack.has_value());
#if !__has_feature(thread_sanitizer)  // there it may be inside the sanitizer, as below in libc
  CHECK_THAT(stack->to_string(), Catch::Contains("stack_trace_test::spin"));
#endif
}

TEST_CASE("the stack of a thread that waits in libc names our function", "[stack_trace][thread]") {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  std::atomic<pid_t> tid{0};
  std::thread thread([&] { sleep_in_libc(&tid, fds[0]); });
  tid.wait(0);
  for (int again = 0; again < 20; ++again) {
    const auto stack = otp::capture_thread(tid.load(), 10s);
    REQUIRE(stack.has_value());
#if !__has_feature(thread_sanitizer)  // there libc's frames hide their caller
    CHECK_THAT(stack->to_string(), Catch::Contains("stack_trace_test::sleep_in_libc"));
#endif
  }
  REQUIRE(write(fds[1], "x", 1) == 1);
  thread.join();
  close(fds[0]);
  close(fds[1]);
}

TEST_CASE("the stack of a thread that reads the clock names our function",
          "[stack_trace][thread]") {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] { read_the_clock(&tid, &stop); });
  tid.wait(0);
  int captured = 0;
  std::string nameless;
  for (int again = 0; again < 200; ++again) {
    const auto stack = otp::capture_thread(tid.load(), 10s);
    if (!stack.has_value()) continue;
    ++captured;
    const std::string text = stack->to_string();
    if (text.find("stack_trace_test::read_the_clock") == std::string::npos) nameless += text + "\n";
  }
  stop.store(true);
  thread.join();
  CHECK(captured == 200);
#if !__has_feature(thread_sanitizer)  // there libc's frames may hide their caller
  CHECK(nameless == "");
#endif
}

#if defined(__x86_64__) && !__has_feature(thread_sanitizer)  // there a stub hides its caller
TEST_CASE("the stack of a thread in a linker's stub names its callers", "[stack_trace][thread]") {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> stop{false};
  std::thread thread([&] { wait_in_a_stub(&tid, &stop); });
  tid.wait(0);
  const std::string caller = "#2 stack_trace_test::wait_in_a_stub";
  std::string text;
  for (int again = 0; again < 1000 && text.find(caller) == std::string::npos; ++again) {
    const auto stack = otp::capture_thread(tid.load(), 10s);
    if (stack.has_value()) text = stack->to_string();
  }
  stop.store(true);
  thread.join();
  CHECK_THAT(text, Catch::Contains(caller));
}
#endif

TEST_CASE("a thread that blocks signals or is gone gives nothing in time",
          "[stack_trace][thread]") {
  CHECK_FALSE(otp::capture_thread(0x3ffffffe, 10s).has_value());
  std::atomic<pid_t> tid{0};
  std::binary_semaphore finish(0);
  std::thread thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    tid.store(gettid());
    tid.notify_one();
    finish.acquire();
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);  // the late signals find that nobody waits
  });
  tid.wait(0);
  for (int again = 0; again < 20; ++again) {
    CHECK_FALSE(otp::capture_thread(tid.load(), 1ms).has_value());
  }
  finish.release();
  thread.join();
}

TEST_CASE("many threads can take stacks of one another", "[stack_trace][thread]") {
  constexpr int kThreads = 4;
  std::atomic<pid_t> tids[kThreads] = {};
  std::atomic<int> taken{0};
  std::atomic<int> finished{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < kThreads; ++self) {
    threads.emplace_back([&, self] {
      tids[self].store(gettid());
      tids[self].notify_all();
      for (int other = 0; other < kThreads; ++other) tids[other].wait(0);
      for (int round = 0; round < 50; ++round) {
        const auto stack = otp::capture_thread(tids[(self + 1 + round % 3) % kThreads].load(), 10s);
        if (stack.has_value() && !stack->empty()) ++taken;
      }
      ++finished;
      finished.notify_all();
      for (int seen = finished; seen < kThreads; seen = finished) finished.wait(seen);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(taken == kThreads * 50);
}

TEST_CASE("names that are no symbols stay, long ones are cut", "[stack_trace]") {
  CHECK(otp::demangle("i") == "int");
  CHECK(otp::demangle("not a symbol") == "not a symbol");
  CHECK(otp::demangle("a name that is too long", 6) == "a name...");
}
