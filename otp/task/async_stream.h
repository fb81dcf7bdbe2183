#pragma once

#include <chrono>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/async/async.h"
#include "otp/base/result.h"
#include "otp/base/term.h"
#include "otp/task/stream_base.h"
#include "otp/task/task_process.h"

/// async_stream: one function over many items, each in a process of its own, some at a time.
///
///     auto prices = otp::Task::async_stream(std::move(skus), fetch_price,
///                                           {.max_concurrency = 2, .timeout = 2s,
///                                            .on_timeout = otp::OnTimeout::kill_task});
///     while (auto price = co_await prices.next()) {  // otp::Result<int>, in input order
///       if (price->ok()) total += price->value();
///     }
///
/// The source is any range; a function that returns std::optional<Item>, nullopt at the end; or one
/// that waits and returns Async<std::optional<Item>>. It is asked in the consumer's process, never
/// for more than max_concurrency items beyond what was taken, so it may be without end. In a linked
/// stream an item that fails ends the consumer, unless that traps exits; else the failure is the
/// item's result. Nothing of a stream ever lies in the consumer's mailbox.
///
/// A stream that is dropped before its end kills what still runs: no task runs on past its next
/// call of the library. close() does the same and waits until they are gone. A source that throws
/// does it too; what it threw leaves next().
///
/// Not for a handful of different things: start Tasks. OTP: Elixir's Task.async_stream. Differs:
/// ordered results that wait for an earlier one count as running, so a slow item holds up the
/// source instead of filling memory.
namespace otp {

namespace internal {

template <class R>
struct Optional : std::false_type {};
template <class R>
struct Optional<std::optional<R>> : std::true_type {
  using Item = R;
};

/// Hands out the items of a range that it owns, or of a view.
template <class R>
class RangeSource {
 public:
  using Item = std::ranges::range_value_t<R>;
  static constexpr bool kWaits = false;
  explicit RangeSource(R range) : range_(std::move(range)) {}
  std::optional<Item> pull() {
    if (!at_) {
      at_.emplace(std::ranges::begin(range_));  // not before: the range has its final place now
    } else {
      ++*at_;
    }
    if (*at_ == std::ranges::end(range_)) return std::nullopt;
    if constexpr (std::ranges::view<R>) {
      return std::optional<Item>(std::in_place, **at_);
    } else {
      return std::optional<Item>(std::in_place, std::ranges::iter_move(*at_));
    }
  }

 private:
  R range_;
  std::optional<std::ranges::iterator_t<R>> at_;
};

/// Asks a function for the items.
template <class G>
class FunctionSource {
  using Return = TaskReturn<std::invoke_result_t<G&>>;
  static_assert(Optional<typename Return::Type>::value,
                "the source must be a range, or a function that returns std::optional<Item> or "
                "otp::Async<std::optional<Item>>");

 public:
  using Item = typename Optional<typename Return::Type>::Item;
  static constexpr bool kWaits = Return::waits;
  explicit FunctionSource(G function) : function_(std::move(function)) {}
  auto pull() { return function_(); }

 private:
  G function_;
};

template <class S>
struct SourceOf {
  using Type = FunctionSource<S>;
};
template <std::ranges::range S>
struct SourceOf<S> {
  using Type = RangeSource<S>;
};

/// An item in an error's reason: what a Term can hold, else its type.
template <class Item>
Term term_of_item(const Item& item) {
  if constexpr (std::is_constructible_v<Term, const Item&>) {
    return Term(item);
  } else {
    return Term::atom(std::string(type_name<Item>()));
  }
}

}  // namespace internal

namespace internal {

/// What else must be done before an item's task may run: nothing. Else a function of its Pid that
/// returns Async<void>.
struct NoAdoption {
  static constexpr bool kAdopts = false;
};

}  // namespace internal

/// The results of one function over many items. Stays where it was made: in one process.
template <class S, class F, class Adoption = internal::NoAdoption>
class [[nodiscard]] AsyncStream : public internal::StreamBase {
  using Source = typename internal::SourceOf<S>::Type;
  static constexpr bool kWaits = Source::kWaits || Adoption::kAdopts;

 public:
  using Item = typename Source::Item;
  static_assert(std::is_invocable_v<F&, Item>, "the function cannot be called with an item");
  static_assert(std::is_copy_constructible_v<F>, "each task gets a copy of the function");
  using T = internal::TaskValue<F, Item>;

  AsyncStream(S source, F function, const AsyncStreamOptions& options, Adoption adoption = {})
      : StreamBase(options, kWaits),
        source_(std::move(source)),
        function_(std::move(function)),
        adoption_(std::move(adoption)) {
    if constexpr (!std::is_void_v<T>) require_shareable<T>();
  }

  /// The next result: a value, or the reason for which an item has none (its own, or `timeout`);
  /// nullopt when the source is used up and every task is gone.
  ///
  /// Errors: throws what the source threw; Exit {timeout,{task,async_stream,[Timeout]}} with
  ///         OnTimeout::exit. Either way the other tasks are gone by then.
  auto next() {
    require_owner();
    if constexpr (kWaits) {
      return next_after_waiting();
    } else {
      return Next(*this);
    }
  }

  /// All results that are left.
  Async<std::vector<Result<T>>> collect() {
    std::vector<Result<T>> results;
    while (std::optional<Result<T>> result = co_await next()) results.push_back(std::move(*result));
    co_return results;
  }

 private:
  class Next : public Wait {
   public:
    explicit Next(AsyncStream& stream) : Wait(stream), typed_(stream) {}
    std::optional<Result<T>> await_resume() { return typed_.take(Wait::await_resume()); }

   private:
    AsyncStream& typed_;
  };

  std::optional<Result<T>> take(Slot* slot) {
    if (slot == nullptr) return std::nullopt;
    internal::Letter* letter = take_result(*slot);
    if (letter == nullptr) return std::optional<Result<T>>(std::in_place, take_reason(*slot));
    if constexpr (std::is_void_v<T>) {
      internal::self_process().consume(letter);
      return std::optional<Result<T>>(std::in_place);
    } else {
      std::optional<Result<T>> result(std::in_place, std::move(letter->as<TaskReply<T>>().value));
      internal::self_process().consume(letter);
      return result;
    }
  }

  Pid start(Item item) {
    std::optional<Term> input;
    if (zips_input()) input = internal::term_of_item(item);
    auto body = std::make_unique<internal::FunctionTask<F, Item>>(function_, std::move(item));
    if constexpr (Adoption::kAdopts) body->hold();
    return launch(std::move(body), input ? &*input : nullptr);
  }

  void fill() noexcept override {
    if constexpr (!kWaits) {
      try {
        while (wants_more()) {
          std::optional<Item> item = source_.pull();
          if (!item.has_value()) return exhausted();
          start(std::move(*item));
        }
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  Async<std::optional<Result<T>>> next_after_waiting() {
    for (;;) {
      while (wants_more() && !is_ready()) {
        std::exception_ptr thrown;
        try {
          std::optional<Item> item = co_await pull_one();
          if (item.has_value()) {
            Pid task = start(std::move(*item));
            if constexpr (Adoption::kAdopts) co_await adoption_(task);
          } else {
            exhausted();
          }
        } catch (...) {
          thrown = std::current_exception();
        }
        if (thrown != nullptr) fail(std::move(thrown));
      }
      Wait wait(*this);
      Slot* slot = co_await wait;
      if (slot != nullptr) co_return take(slot);
      if (!wants_more()) co_return std::nullopt;
    }
  }
  auto pull_one() {
    stamp();
    if constexpr (Source::kWaits) {
      return source_.pull();
    } else {
      return AtOnce{source_.pull()};
    }
  }
  struct AtOnce : std::suspend_never {
    std::optional<Item> item;
    explicit AtOnce(std::optional<Item> pulled) : item(std::move(pulled)) {}
    std::optional<Item> await_resume() { return std::move(item); }
  };

  Source source_;
  F function_;
  [[no_unique_address]] Adoption adoption_;
};

}  // namespace otp
