#include "otp/behaviour/sys.h"

#include <algorithm>

namespace otp::sys {

using namespace internal;

namespace {

constexpr size_t kStateBytesMax = 8 * 1024;

void answer_done(SysProcess& process, Letter& letter) {
  process.reply_system(letter, make_signal(LetterKind::reply));
}

Async<Result<void>> command(Target target, void (*run)(SysProcess&, Letter&), Options options) {
  return ask_system<void>(target.pid(), options.timeout, make_system_letter(SystemRequest{run}));
}

struct Switch {
  SystemRequest request;
  size_t value;
};
Async<Result<void>> switch_to(Target target, void (*run)(SysProcess&, Letter&), size_t value,
                              Options options) {
  return ask_system<void>(target.pid(), options.timeout, make_system_letter(Switch{{run}, value}));
}

struct Install {
  SystemRequest request;
  std::string id;
  EventFunction function;
};

struct Terminate {
  SystemRequest request;
  ExitReason reason;
};

auto find_installed(SysDebug& debug, const std::string& id) {
  return std::ranges::find(debug.installed, id, &SysDebug::Installed::id);
}

void run_get_text(SysProcess& process, Letter& letter) {
  if (std::string why = process.why_no_state(); !why.empty()) {
    return process.refuse_system(letter, ExitReason::tagged("no_state", Term(std::move(why))));
  }
  answer_system(process, letter, process.state_text(kStateBytesMax));
}

void run_suspend(SysProcess& process, Letter& letter) {
  process.suspend_now();
  answer_done(process, letter);
}

void run_resume(SysProcess& process, Letter& letter) {
  process.resume_now();
  answer_done(process, letter);
}

void run_terminate(SysProcess& process, Letter& letter) {
  ExitReason reason = letter.as<Terminate>().reason;
  answer_done(process, letter);
  process.stop_with(std::move(reason));
}

void run_get_status(SysProcess& process, Letter& letter) {
  answer_system(process, letter, process.status());
}

void run_statistics(SysProcess& process, Letter& letter) {
  SysDebug& debug = process.debug();
  debug.counting = letter.as<Switch>().value != 0;
  debug.since = process.system().now();
  debug.messages_in = debug.messages_out = 0;
  process.settle_debug();
  answer_done(process, letter);
}

void run_get_statistics(SysProcess& process, Letter& letter) {
  const SysDebug* debug = process.debug_if_any();
  if (debug == nullptr || !debug->counting) {
    return process.refuse_system(letter, ExitReason::atom("no_statistics"));
  }
  answer_system(process, letter,
                Statistics{.age = Duration(process.system().now() - debug->since),
                           .messages_in = debug->messages_in,
                           .messages_out = debug->messages_out});
}

void run_trace(SysProcess& process, Letter& letter) {
  process.debug().tracing = letter.as<Switch>().value != 0;
  process.settle_debug();
  answer_done(process, letter);
}

void run_log(SysProcess& process, Letter& letter) {
  SysDebug& debug = process.debug();
  debug.log_max = letter.as<Switch>().value;
  if (debug.log.size() > debug.log_max) {
    const auto surplus = static_cast<ptrdiff_t>(debug.log.size() - debug.log_max);
    debug.log.erase(debug.log.begin(), debug.log.begin() + surplus);
  }
  process.settle_debug();
  answer_done(process, letter);
}

void run_get_log(SysProcess& process, Letter& letter) {
  const SysDebug* debug = process.debug_if_any();
  answer_system(process, letter, debug == nullptr ? std::vector<std::string>() : debug->log);
}

void run_install(SysProcess& process, Letter& letter) {
  auto& request = letter.as<Install>();
  SysDebug& debug = process.debug();
  if (find_installed(debug, request.id) != debug.installed.end()) {
    return process.refuse_system(letter, ExitReason::atom("already_installed"));
  }
  debug.installed.push_back({std::move(request.id), std::move(request.function)});
  answer_done(process, letter);
}

void run_remove(SysProcess& process, Letter& letter) {
  SysDebug& debug = process.debug();
  auto found = find_installed(debug, letter.as<Install>().id);
  if (found != debug.installed.end()) debug.installed.erase(found);
  process.settle_debug();
  answer_done(process, letter);
}

void run_no_debug(SysProcess& process, Letter& letter) {
  process.debug() = SysDebug();
  process.settle_debug();
  answer_done(process, letter);
}

}  // namespace

Async<Result<std::string>> get_state(Target target, Options options) {
  return ask_system<std::string>(target.pid(), options.timeout,
                                 make_system_letter(SystemRequest{&run_get_text}));
}

Async<Result<void>> suspend(Target target, Options options) {
  return command(target, &run_suspend, options);
}

Async<Result<void>> resume(Target target, Options options) {
  return command(target, &run_resume, options);
}

Async<Result<void>> terminate(Target target, ExitReason reason, Options options) {
  return ask_system<void>(target.pid(), options.timeout,
                          make_system_letter(Terminate{{&run_terminate}, std::move(reason)}));
}

Async<Result<Status>> get_status(Target target, Options options) {
  return ask_system<Status>(target.pid(), options.timeout,
                            make_system_letter(SystemRequest{&run_get_status}));
}

Async<Result<void>> statistics(Target target, bool on, Options options) {
  return switch_to(target, &run_statistics, on ? 1 : 0, options);
}

Async<Result<Statistics>> get_statistics(Target target, Options options) {
  return ask_system<Statistics>(target.pid(), options.timeout,
                                make_system_letter(SystemRequest{&run_get_statistics}));
}

Async<Result<void>> trace(Target target, bool on, Options options) {
  return switch_to(target, &run_trace, on ? 1 : 0, options);
}

Async<Result<void>> log(Target target, size_t events_max, Options options) {
  return switch_to(target, &run_log, events_max, options);
}

Async<Result<std::vector<std::string>>> get_log(Target target, Options options) {
  return ask_system<std::vector<std::string>>(target.pid(), options.timeout,
                                              make_system_letter(SystemRequest{&run_get_log}));
}

Async<Result<void>> install(Target target, std::string id, EventFunction function,
                            Options options) {
  return ask_system<void>(
      target.pid(), options.timeout,
      make_system_letter(Install{{&run_install}, std::move(id), std::move(function)}));
}

Async<Result<void>> remove(Target target, std::string id, Options options) {
  return ask_system<void>(target.pid(), options.timeout,
                          make_system_letter(Install{{&run_remove}, std::move(id), nullptr}));
}

Async<Result<void>> no_debug(Target target, Options options) {
  return command(target, &run_no_debug, options);
}

}  // namespace otp::sys
