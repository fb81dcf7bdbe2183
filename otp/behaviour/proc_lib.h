#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "otp/behaviour/gen_server.h"

/// proc_lib: plain processes whose start is acknowledged, so that a supervisor can start them.
///
///     otp::Async<void> listener(otp::InitAck ack, uint16_t port) {
///       auto socket = co_await open(port);    // an exception here fails the start
///       ack.ready();                          // start_link returns now
///       for (;;) co_await serve(socket);
///     }
///     otp::Pid pid = (co_await otp::proc_lib::start_link({}, listener, 8080)).or_exit();
///
/// A function without an InitAck counts as started when its process exists. OTP: proc_lib.
namespace otp {

/// The first parameter of a process function that says itself when it is ready.
class InitAck {
 public:
  /// The start has succeeded: whoever started this process goes on. Only the first time counts.
  /// Threads: in the process that was started. OTP: proc_lib:init_ack/1.
  void ready() const;
  /// The start has failed: the starter gets `reason`, and the process ends `normal`, so a linked
  /// starter lives. OTP: proc_lib:init_fail/2 with {exit, normal}.
  [[noreturn]] void fail(ExitReason reason) const;
};

namespace internal {

/// A plain process that somebody waits for.
class AckedProcess : public PlainProcess {
 public:
  AckedProcess(std::string name, StartAck ack, bool at_once)
      : name_(std::move(name)), ack_(ack), at_once_(at_once) {}
  void on_start() override;
  void answer_waiting() noexcept override;
  Ancestors ancestors() const override {
    return {parent(), ack_.ancestors[0], ack_.ancestors[1], ack_.ancestors[2]};
  }
  void acknowledge(Letter* letter);
  void fail_start(ExitReason answer);

 private:
  std::string name_;
  StartAck ack_;
  ExitReason answer_;
  bool failed_ = false;
  const bool at_once_;
};

template <class F, class... A>
inline constexpr bool kTakesInitAck = std::is_invocable_v<F&, InitAck, A...>;

template <class F, class... A>
class AckedFunction final : public AckedProcess {
 public:
  AckedFunction(std::string name, StartAck ack, F function, std::tuple<A...> arguments)
      : AckedProcess(std::move(name), ack, !kTakesInitAck<F, A...>),
        function_(std::move(function)),
        arguments_(std::move(arguments)) {}

 private:
  Async<void> body() override {
    return std::apply(
        [this](A&... a) {
          if constexpr (kTakesInitAck<F, A...>) {
            return std::invoke(function_, InitAck(), std::move(a)...);
          } else {
            return std::invoke(function_, std::move(a)...);
          }
        },
        arguments_);
  }
  F function_;
  std::tuple<A...> arguments_;
};

template <class F, class... A>
struct FunctionCall {
  F function;
  std::tuple<A...> arguments;

  static std::unique_ptr<Process> make(std::string name, StartAck ack, void* call) {
    auto& self = *static_cast<FunctionCall*>(call);
    return std::make_unique<AckedFunction<F, A...>>(std::move(name), ack, std::move(self.function),
                                                    std::move(self.arguments));
  }
};

template <class F, class... A>
Async<Result<Pid>> start_function(StartOptions options, StartTies ties,
                                  FunctionCall<F, A...> call) {
  auto started =
      co_await start_server(&FunctionCall<F, A...>::make, &call, std::move(options), ties);
  if (started.ok()) co_return started.value().pid;
  co_return started.error();
}

}  // namespace internal

namespace proc_lib {

/// Starts `function(arguments...)`, or `function(InitAck, arguments...)`, in a process linked to
/// this one, and waits until it is ready.
///
/// Returns: co_await gives Result<Pid>; the error is what left the function before it was ready,
///          {already_started,Pid} when options.name is taken, or `timeout`.
/// OTP:     proc_lib:start_link/3,4.
template <class F, class... A>
Async<Result<Pid>> start_link(StartOptions options, F function, A... arguments) {
  return internal::start_function(
      std::move(options), {.link = true},
      internal::FunctionCall<F, A...>{std::move(function), {std::move(arguments)...}});
}
/// Without a link. OTP: proc_lib:start/3,4.
template <class F, class... A>
Async<Result<Pid>> start(StartOptions options, F function, A... arguments) {
  return internal::start_function(
      std::move(options), {},
      internal::FunctionCall<F, A...>{std::move(function), {std::move(arguments)...}});
}

}  // namespace proc_lib
}  // namespace otp
