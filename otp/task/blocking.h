#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "otp/base/result.h"
#include "otp/base/shareable.h"
#include "otp/runtime/blocking_pool.h"
#include "otp/runtime/runtime.h"

/// blocking(): code that blocks a thread, away from the cores.
///
///     std::string text = co_await otp::blocking(read_file, path);
///
/// The function runs on a thread of the System's blocking lane (SystemOptions::blocking_threads_max
/// and blocking_queue_max). The calling process waits meanwhile, no core does. The function works
/// on values it owns: it outlives a caller that is killed, and its result is dropped then. It is no
/// process: otp::self() and receive are not for it, otp::send is.
///
/// Not for code that waits for messages, timers or sockets: that can be awaited without a thread.
namespace otp {

namespace internal {

/// One function on its way through the blocking lane; what does not depend on its types.
class BlockingWork : public BlockingPool::Work {
 public:
  void run() noexcept final;

 protected:
  /// Calls the function, lets go of what it was given, and returns the answer.
  virtual Letter* answer() noexcept = 0;

 private:
  friend class BlockingBase;
  SystemImpl* system_ = nullptr;
  uint64_t caller_ = 0;
  uint64_t reference_ = 0;
};

class BlockingBase {
 public:
  BlockingBase(const BlockingBase&) = delete;
  BlockingBase& operator=(const BlockingBase&) = delete;

 protected:
  explicit BlockingBase(std::unique_ptr<BlockingPool::Work> work) : work_(std::move(work)) {}
  /// False: the lane is full.
  bool suspend();
  /// The answer; null: the lane was full.
  Letter* finish();

 private:
  std::unique_ptr<BlockingPool::Work> work_;
};

/// What the function left: its value or its exception.
template <class T>
using BlockingOutcome =
    std::variant<std::conditional_t<std::is_void_v<T>, std::monostate, T>, std::exception_ptr>;

template <class F, class... A>
class BlockingCall final : public BlockingWork {
 public:
  using T = std::invoke_result_t<F&, A...>;
  explicit BlockingCall(F function, A... arguments)
      : owned_(std::in_place, std::move(function), std::move(arguments)...) {}

 private:
  Letter* answer() noexcept override {
    BlockingOutcome<T> outcome = call();
    owned_.reset();
    return make_letter<BlockingOutcome<T>>(LetterKind::reply, plain_operation<BlockingOutcome<T>>,
                                           std::move(outcome));
  }
  BlockingOutcome<T> call() noexcept {
    try {
      return std::apply(
          [](F& function, A&... a) -> BlockingOutcome<T> {
            if constexpr (std::is_void_v<T>) {
              std::invoke(function, std::move(a)...);
              return std::monostate();
            } else {
              return BlockingOutcome<T>(std::in_place_index<0>,
                                        std::invoke(function, std::move(a)...));
            }
          },
          *owned_);
    } catch (...) {
      return std::current_exception();
    }
  }
  std::optional<std::tuple<F, A...>> owned_;
};

template <class T, bool kThrows>
class [[nodiscard]] Blocking : BlockingBase {
 public:
  explicit Blocking(std::unique_ptr<BlockingPool::Work> work) : BlockingBase(std::move(work)) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise>) {
    return suspend();
  }
  std::conditional_t<kThrows, T, Result<T>> await_resume() {
    Letter* letter = finish();
    if (letter == nullptr) {
      ExitReason full = ExitReason::atom("system_limit");
      if constexpr (kThrows) {
        throw Exit(std::move(full));
      } else {
        return full;
      }
    }
    BlockingOutcome<T> outcome = std::move(letter->as<BlockingOutcome<T>>());
    self_process().consume(letter);
    if (outcome.index() == 1) std::rethrow_exception(std::get<1>(outcome));
    if constexpr (!std::is_void_v<T>) {
      return std::get<0>(std::move(outcome));
    } else if constexpr (!kThrows) {
      return {};
    }
  }
};

template <bool kThrows, class F, class... A>
auto make_blocking(F function, A... arguments) {
  static_assert(std::is_invocable_v<F&, A...>,
                "the function cannot be called with these arguments");
  using T = std::invoke_result_t<F&, A...>;
  if constexpr (!std::is_void_v<T>) require_shareable<T>();
  return Blocking<T, kThrows>(
      std::make_unique<BlockingCall<F, A...>>(std::move(function), std::move(arguments)...));
}

}  // namespace internal

/// Runs `function(arguments...)` on the blocking lane and waits for its result.
///
/// Returns: co_await gives what the function returns; what it throws is thrown.
/// Errors:  throws Exit `system_limit` when the lane's queue is full or no thread can be had;
///          try_blocking returns that as a Result.
/// Threads: inside a process. In a Simulator the function runs inline, so that a seed's trace is
///          the same each time.
template <class F, class... A>
auto blocking(F function, A... arguments) {
  return internal::make_blocking<true>(std::move(function), std::move(arguments)...);
}
/// blocking() for callers that plan for a full lane. What the function throws is still thrown.
template <class F, class... A>
auto try_blocking(F function, A... arguments) {
  return internal::make_blocking<false>(std::move(function), std::move(arguments)...);
}

}  // namespace otp
