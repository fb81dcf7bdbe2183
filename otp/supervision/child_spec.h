#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "otp/behaviour/proc_lib.h"
#include "otp/supervision/child_spec_types.h"

/// Child specifications: what a supervisor starts, restarts and stops, and how.
///
///     otp::SupervisorSpec spec{
///         .strategy = otp::Strategy::rest_for_one,
///         .intensity = 3,
///         .children = {otp::child<Ledger>("ledger", {.currency = "EUR"}, {.name = "ledger"}),
///                      otp::child<Teller>("teller", {}, {.restart = otp::Restart::transient})}};
///
/// A specification is plain data that can be copied, changed and sent. Each start of a child gets
/// exactly the arguments of its specification, and nothing of an earlier life.
namespace otp {

/// What a start function gives back.
struct StartedChild {
  Pid pid;      ///< nobody: the start was ignored and the specification is kept
  Term info{};  ///< what the start function says besides; OTP: {ok, Pid, Info}
};

namespace internal {

/// What a specification says about how the process is made.
struct StartSettings {
  MailboxLimit mailbox{};
  bool drop_expired = false;
};

/// A start function with its arguments: called again for each restart. Immutable, shared by all
/// copies of a specification.
class ChildStart {
 public:
  ChildStart() = default;
  ChildStart(const ChildStart&) = delete;
  ChildStart& operator=(const ChildStart&) = delete;
  virtual ~ChildStart() = default;
  /// Runs in the supervisor's process and links the child to it. The object lives until the result
  /// is there.
  virtual Async<Result<Started>> start(StartSettings settings) const = 0;
};

}  // namespace internal

/// A type-erased start function with its arguments; null: none.
using StartFunction = std::shared_ptr<const internal::ChildStart>;

/// One child of a supervisor. OTP: supervisor:child_spec(), with its defaults.
struct ChildSpec {
  std::string id;       ///< unique in its supervisor; a DynamicSupervisor ignores it
  StartFunction start;  ///< what child<S>() and its like make
  Restart restart = Restart::permanent;
  /// 5 s for a worker, infinity for a supervisor, unless given.
  std::optional<Shutdown> shutdown{};
  ChildType type = ChildType::worker;
  bool significant = false;
  MailboxLimit mailbox{};
  Backoff backoff{};
  bool drop_expired = false;
  /// The server type, for reports and which_children. OTP: modules.
  std::string_view server{};
  /// Its descriptor, null for what is not a server.
  const internal::ServerType* server_type = nullptr;

  Shutdown shutdown_or_default() const {
    if (shutdown) return *shutdown;
    return type == ChildType::supervisor ? Shutdown(infinity) : Shutdown(kDefaultWorkerShutdown);
  }
};

/// A supervisor: its strategy, its limits, and its children in the order in which they start.
/// OTP: supervisor:sup_flags() and the list of child specifications, with OTP's defaults: one
/// restart in 5 s.
struct SupervisorSpec {
  Strategy strategy = kDefaultStrategy;
  uint32_t intensity = kDefaultIntensity;  ///< more restarts than this within `period`: it gives up
  Duration period = kDefaultPeriod;
  AutoShutdown auto_shutdown = AutoShutdown::never;
  std::vector<ChildSpec> children{};
};

/// Whether the specifications could be children of one supervisor: nothing, or what is wrong with
/// the first bad one, naming the field. OTP: supervisor:check_childspecs/2.
std::optional<ExitReason> check_child_specs(const std::vector<ChildSpec>& specs,
                                            AutoShutdown auto_shutdown = AutoShutdown::never);
/// The same for the other fields of a supervisor's specification.
std::optional<ExitReason> check_supervisor_flags(const SupervisorSpec& spec);

/// What child<S>() may be told besides id and arguments.
struct ChildOptions {
  std::string name{};            ///< registered before the child's init runs; empty: none
  std::optional<ViaName> via{};  ///< a name in a registry, likewise
  Restart restart = Restart::permanent;
  std::optional<Shutdown> shutdown{};
  bool significant = false;
  MailboxLimit mailbox{};
  Backoff backoff{};
  bool drop_expired = false;
  Timeout start_timeout = infinity;  ///< for init
};

namespace internal {

std::optional<Term> check_child_spec(const ChildSpec& spec, AutoShutdown auto_shutdown,
                                     bool needs_id = true);
ChildSpec make_child_spec(std::string id, StartFunction start, const ChildOptions& options);

/// A start that makes a process whose init is acknowledged.
class ProcessStart : public ChildStart {
 public:
  explicit ProcessStart(StartOptions options) : options_(std::move(options)) {}
  Async<Result<Started>> start(StartSettings settings) const override;

 protected:
  virtual std::unique_ptr<Process> make(std::string name, StartAck ack) const = 0;

 private:
  static std::unique_ptr<Process> make_process(std::string name, StartAck ack, void* self);
  const StartOptions options_;
};

template <class S, class Make>
class ServerStart final : public ProcessStart {
 public:
  ServerStart(StartOptions options, Make make_arguments)
      : ProcessStart(std::move(options)), make_arguments_(std::move(make_arguments)) {}

 private:
  std::unique_ptr<Process> make(std::string name, StartAck ack) const override {
    return std::make_unique<ServerProcess<S>>(std::move(name), ack, make_arguments_());
  }
  const Make make_arguments_;
};

template <class F, class... A>
class FunctionStart final : public ProcessStart {
 public:
  FunctionStart(StartOptions options, F function, A... arguments)
      : ProcessStart(std::move(options)),
        function_(std::move(function)),
        arguments_(std::move(arguments)...) {}

 private:
  std::unique_ptr<Process> make(std::string name, StartAck ack) const override {
    return std::make_unique<AckedFunction<F, A...>>(std::move(name), ack, function_, arguments_);
  }
  const F function_;
  const std::tuple<A...> arguments_;
};

inline Started to_started(StartedChild child) { return {child.pid, {}, std::move(child.info)}; }
inline Started to_started(Pid pid) { return {pid, {}, {}}; }
template <class S>
Started to_started(const Server<S>& server) {
  return {server.pid(), {}, {}};
}

template <class F>
class CustomStart final : public ChildStart {
 public:
  explicit CustomStart(F function) : function_(std::move(function)) {}
  Async<Result<Started>> start(StartSettings) const override {
    auto result = co_await function_();
    if (result.ignored()) co_return Ignored();
    if (!result.ok()) co_return result.error();
    Started started = to_started(std::move(result).value());
    if (started.pid) link(started.pid);  // a child that nobody is linked to would be lost
    co_return started;
  }

 private:
  const F function_;
};

template <class S, class Make>
ChildSpec server_child(std::string id, Make make, ChildOptions options) {
  auto start =
      std::make_shared<const ServerStart<S, Make>>(StartOptions{.name = std::move(options.name),
                                                                .timeout = options.start_timeout,
                                                                .via = std::move(options.via)},
                                                   std::move(make));
  ChildSpec spec = make_child_spec(std::move(id), std::move(start), options);
  spec.server = server_type<S>.name;
  spec.server_type = &server_type<S>;
  if constexpr (requires { S::kChildType; }) spec.type = S::kChildType;
  return spec;
}

}  // namespace internal

/// A server of type S. Each start copies `arguments`.
template <class S>
ChildSpec child(std::string id, typename internal::ArgsOf<S>::Type arguments = {},
                ChildOptions options = {}) {
  static_assert(std::is_copy_constructible_v<typename internal::ArgsOf<S>::Type>,
                "each restart needs the arguments again: make Args copyable, or give "
                "otp::child<S>(id, function) a function that makes them");
  return internal::server_child<S>(
      std::move(id), [arguments = std::move(arguments)] { return arguments; }, std::move(options));
}

/// A server of type S whose arguments cannot be copied: `make_arguments()` makes them for each
/// start.
template <class S, class Make>
  requires std::is_invocable_r_v<typename internal::ArgsOf<S>::Type, const Make&>
ChildSpec child(std::string id, Make make_arguments, ChildOptions options = {}) {
  return internal::server_child<S>(std::move(id), std::move(make_arguments), std::move(options));
}

/// A plain process that runs `function(arguments...)`, or `function(InitAck, arguments...)`: then
/// the start waits for its ready(). Each start copies function and arguments.
template <class F, class... A>
ChildSpec plain_child(std::string id, ChildOptions options, F function, A... arguments) {
  static_assert(std::is_invocable_v<F&, A...> || internal::kTakesInitAck<F, A...>,
                "the function cannot be called with these arguments");
  auto start = std::make_shared<const internal::FunctionStart<F, A...>>(
      StartOptions{std::move(options.name), options.start_timeout}, std::move(function),
      std::move(arguments)...);
  return internal::make_child_spec(std::move(id), std::move(start), options);
}

/// A child started by `function()`, which runs in the supervisor's process and returns an
/// otp::Async of Result<StartedChild>, Result<Pid> or Result<Server<S>>. OTP: an MFA of one's own.
template <class F>
ChildSpec child_started_by(std::string id, F function, ChildOptions options = {}) {
  return internal::make_child_spec(
      std::move(id), std::make_shared<const internal::CustomStart<F>>(std::move(function)),
      options);
}

}  // namespace otp

template <>
struct otp::Shareable<otp::ChildSpec> : std::true_type {};
template <>
struct otp::Shareable<otp::SupervisorSpec> : std::true_type {};
