#pragma once

#include "otp/base/compiler.h"

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <utility>

#include "otp/base/await_stack.h"
#include "otp/base/check.h"
#include "otp/base/pool.h"

/// Async<T>: the coroutine type of everything that may wait.
///
///     otp::Async<int> total(otp::Server<Shop> shop) {
///       int a = co_await otp::call(shop, Price{.sku = 1});
///       co_return a + co_await otp::call(shop, Price{.sku = 2});
///     }
///
/// Lazy: nothing runs until it is awaited, and it is awaited where it is made. The result of the
/// co_await is the returned value, or the exception that left the coroutine. Destroying an Async
/// that has not finished destroys its frame and, with it, every object of its frame; nothing is
/// thrown.
///
/// Awaiting does not recurse. A frame that awaits another one returns to the Driver, which resumes
/// the other: five million awaits in a loop and a chain 100,000 deep use no more stack than one.
///
/// Not for sharing: an Async belongs to one process (one Driver) and never moves while it is
/// awaited.
namespace otp {

template <class T = void>
class Async;

namespace internal {

class Driver;
struct PromiseBase;

/// Where `innermost` and the frames that await it stand.
AwaitStack await_stack_of(const PromiseBase* innermost);
/// Remembers that with the exception that is leaving `innermost`; the first frame it leaves counts.
void note_await_stack(const PromiseBase& innermost) noexcept;

/// What every Async frame knows of its place in the chain of awaiting frames.
struct PromiseBase {
  Driver* driver = nullptr;
  PromiseBase* parent = nullptr;             // the frame that awaits this one
  std::coroutine_handle<>* owner = nullptr;  // the handle inside the Async that owns this frame
  std::coroutine_handle<> handle;            // this frame
  std::source_location await_site;           // the co_await at which this frame waits
  std::exception_ptr exception;

  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* frame, size_t bytes) noexcept { pool_free(frame, bytes); }

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> handle) const noexcept;
    void await_resume() const noexcept {}
  };
  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept {
    exception = std::current_exception();
    note_await_stack(*this);
  }

  template <class Awaitable>
  Awaitable&& await_transform(Awaitable&& awaitable,
                              std::source_location where = std::source_location::current()) {
    await_site = where;
    return static_cast<Awaitable&&>(awaitable);
  }
};

/// Runs one chain of frames: resumes the innermost one that can go on, until it waits or ends.
///
/// Invariants: (D1) at most one frame of the chain runs at a time. (D2) `top` is the innermost
/// frame. (D3) a frame that waits for something outside leaves `next` empty; whoever ends the wait
/// calls resume_top(). Threads: whoever holds the right to run the process.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver() { destroy(); }

  bool active() const { return top_ != nullptr; }
  bool can_run() const { return next_ != nullptr; }
  const PromiseBase* top() const { return top_; }

  /// Makes `top` go on at the next run().
  void resume_top() { next_ = top_->handle; }

  /// Resumes frames until the chain waits, ends, or `resumes` are used up. Returns what is left of
  /// `resumes`: zero means that there may be more to run.
  uint32_t run(uint32_t resumes) {
    while (next_ != nullptr && resumes > 0) {
      --resumes;
      std::exchange(next_, nullptr).resume();
    }
    return resumes;
  }

  /// Destroys the frames, innermost first, without running them.
  void destroy() noexcept {
    next_ = nullptr;
    while (top_ != nullptr) {
      PromiseBase* frame = top_;
      top_ = frame->parent;
      *frame->owner = nullptr;
      frame->handle.destroy();
    }
  }

  // For awaiters:
  void push(PromiseBase& frame, PromiseBase* parent, std::coroutine_handle<>* owner) {
    frame.driver = this;
    frame.parent = parent;
    frame.owner = owner;
    top_ = &frame;
    next_ = frame.handle;
  }
  void pop(PromiseBase& frame) noexcept {
    top_ = frame.parent;
    if (top_ != nullptr) next_ = top_->handle;
  }

 private:
  std::coroutine_handle<> next_;
  PromiseBase* top_ = nullptr;
};

template <class Promise>
void PromiseBase::FinalAwaiter::await_suspend(
    std::coroutine_handle<Promise> handle) const noexcept {
  PromiseBase& frame = handle.promise();
  frame.driver->pop(frame);
}

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Async<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (exception) std::rethrow_exception(std::move(exception));
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Async<void> get_return_object();
  void return_void() noexcept {}
  void take() {
    if (exception) std::rethrow_exception(std::move(exception));
  }
};

}  // namespace internal

template <class T>
class [[nodiscard]] Async {
 public:
  using promise_type = internal::Promise<T>;
  using Value = T;

  Async() = default;
  Async(Async&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Async& operator=(Async&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Async() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    Async& async;
    bool await_ready() const noexcept { return false; }
    template <class ParentPromise>
    void await_suspend(std::coroutine_handle<ParentPromise> parent) noexcept {
      internal::PromiseBase& waiting = parent.promise();
      waiting.driver->push(async.promise(), &waiting, &async.handle_);
    }
    T await_resume() { return async.promise().take(); }
  };
  Awaiter operator co_await() && noexcept { return Awaiter{*this}; }

  // For whoever runs a Driver: makes this the outermost frame of `driver`.
  void start(internal::Driver& driver) { driver.push(promise(), nullptr, &handle_); }
  bool done() const { return handle_ && handle_.done(); }
  explicit operator bool() const { return handle_ != nullptr; }
  /// REQUIRES: done(). Returns the value or throws what left the coroutine.
  T take() { return promise().take(); }
  /// REQUIRES: done(). What left the coroutine, or null.
  std::exception_ptr take_exception() { return std::move(promise().exception); }

 private:
  friend promise_type;
  explicit Async(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  promise_type& promise() const {
    return std::coroutine_handle<promise_type>::from_address(handle_.address()).promise();
  }
  std::coroutine_handle<> handle_;
};

namespace internal {

template <class T>
Async<T> Promise<T>::get_return_object() {
  auto self = std::coroutine_handle<Promise>::from_promise(*this);
  handle = self;
  return Async<T>(self);
}

inline Async<void> Promise<void>::get_return_object() {
  auto self = std::coroutine_handle<Promise>::from_promise(*this);
  handle = self;
  return Async<void>(self);
}

}  // namespace internal
}  // namespace otp
