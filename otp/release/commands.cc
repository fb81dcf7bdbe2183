#include "otp/release/commands.h"

#include <gnu/libc-version.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string_view>

#include "otp/release/admin_client.h"
#include "otp/release/command_line.h"
#include "otp/release/init_process.h"
#include "otp/release/instance_lock.h"
#include "otp/release/signals.h"
#include "otp/release/std_streams.h"

namespace otp::release {
namespace {

constexpr std::chrono::milliseconds kStartPatience{30'000};
constexpr std::chrono::milliseconds kStopPatience{60'000};
constexpr std::chrono::milliseconds kAnswerPatience{12'000};
// A lock without a socket that answers: a node just begins or ends. Longer than that is worth a
// word.
constexpr std::chrono::milliseconds kBetweenStates{2'000};
constexpr int kPollEveryMs = 10;
constexpr size_t kOperandsMax = 64;  // of rpc

constexpr const char* kUsage =
    R"(usage: NAME COMMAND [OPTION]... [-- ARGUMENT...]

  foreground      run here until TERM, INT or `stop`
  start           run in the background; returns when the node is ready
  stop            ask for the orderly stop and wait for the end
  restart         stop, then start
  status          say whether it runs (exit status 0; 3: not running; 4: cannot tell)
  pid             print its process id
  tree [FILE]     print the running tree, or the one that FILE describes
  check [FILE]    check a configuration without starting anything
  version         print name and version
  rpc COMMAND [ARGUMENT]...   run one of the application's commands and print what it gives
  admin COMMAND [JSON]   ask the running node anything that it answers to
)";

constexpr const char* kOptions =
    R"(
  --config FILE   the configuration; or the variable PREFIX_CONFIG
  --run-dir DIR   for lock, socket, pid file and log; or the variable PREFIX_RUN_DIR
  --timeout TIME  how long start (30s) and stop (60s) wait, such as 90s or 5m
  --json          answers of status, tree and version as JSON
  --no-env        check: for another machine, without this one's variables

exit status: 0 done; 1 failed; 2 wrong usage or configuration; 3 not running; 4 cannot tell;
             5 already running
)";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// One command line being carried out.
class Commands {
 public:
  Commands(const NodeHooks& hooks, CommandLine line) : hooks_(hooks), line_(std::move(line)) {}

  int run();

 private:
  /// What is known about the node of this run directory.
  struct Asked {
    enum class Node { answered, not_running, unclear };
    Node node = Node::unclear;
    AdminResponse response;
    long pid = 0;
    std::string why;  // unclear
  };

  using Handler = int (Commands::*)();
  struct Entry {
    const char* name;
    Handler handler;
    size_t operands_max;
    bool needs_run_dir;
  };
  static const Entry kEntries[];

  int dispatch(const Entry& entry);
  int run_extra(const ExtraCommand& command);
  int help();
  int usage_error(const std::string& message);
  std::string find_layout_for(bool node_command);
  CommandContext context_for_file();

  int foreground();
  int start();
  int stop();
  int restart();
  int status();
  int pid();
  int version();
  int check();
  int tree();
  int rpc();
  int admin();

  Asked ask(const std::string& command, json::object args);
  Asked ask_once(const AdminRequest& request);
  int not_running(bool failure);
  int unclear(const Asked& asked, int status);
  int print_result(const Asked& asked);
  int wait_for_end(Clock::time_point deadline);
  int start_failed(const StartResult& result);

  const NodeHooks& hooks_;
  CommandLine line_;
  Layout layout_;
};

const Commands::Entry Commands::kEntries[] = {
    {"foreground", &Commands::foreground, 0, false},
    {"start", &Commands::start, 0, true},
    {"stop", &Commands::stop, 0, true},
    {"restart", &Commands::restart, 0, true},
    {"status", &Commands::status, 0, true},
    {"pid", &Commands::pid, 0, true},
    {"version", &Commands::version, 0, false},
    {"check", &Commands::check, 1, false},
    {"tree", &Commands::tree, 1, false},
    {"rpc", &Commands::rpc, kOperandsMax, true},
    {"admin", &Commands::admin, 2, true},
    {"help", &Commands::help, 0, false},
};

int Commands::usage_error(const std::string& message) {
  complain(layout_.name.empty() ? "otp" : layout_.name, message + " (see --help)");
  return kExitUsage;
}

std::string Commands::find_layout_for(bool node_command) {
  LayoutRequest request{.program_name = hooks_.name,
                        .program_version = hooks_.version,
                        .config_option = line_.config,
                        .run_dir_option = line_.run_dir,
                        .executable = "",
                        .environment = nullptr,
                        .run_dir_in_config = nullptr};
  // Commands that look at a file must not stumble over it before they can report on it.
  if (node_command) request.run_dir_in_config = hooks_.run_dir_in_config;
  Outcome<Layout> layout = find_layout(request);
  if (!layout.ok()) return layout.error;
  layout_ = std::move(*layout.value);
  return "";
}

int Commands::run() {
  // Usage errors should carry the name, so a first look comes before the words are judged.
  std::string error = find_layout_for(false);
  if (!error.empty()) return usage_error(error);
  if (line_.help) return help();
  if (line_.command.empty()) {
    if (layout_.in_release()) return usage_error("expected a command, got none");
    line_.command = "foreground";
  }
  for (const Entry& entry : kEntries) {
    if (line_.command == entry.name) return dispatch(entry);
  }
  for (const ExtraCommand& command : hooks_.commands) {
    if (line_.command == command.name) return run_extra(command);
  }
  return usage_error("unknown command '" + line_.command + "'");
}

int Commands::dispatch(const Entry& entry) {
  if (line_.operands.size() > entry.operands_max) {
    return usage_error("'" + line_.command + "' does not expect '" +
                       line_.operands[entry.operands_max] + "'");
  }
  bool asks_node = entry.needs_run_dir || entry.handler == &Commands::foreground ||
                   (entry.handler == &Commands::tree && line_.operands.empty());
  if (asks_node) {
    std::string error = find_layout_for(true);
    if (!error.empty()) return usage_error(error);
  }
  if (entry.needs_run_dir && !layout_.managed()) {
    return usage_error("'" + line_.command + "' needs a run directory: set " +
                       environment_prefix(layout_.name) + "_RUN_DIR or give --run-dir");
  }
  return (this->*entry.handler)();
}

int Commands::run_extra(const ExtraCommand& command) {
  CommandContext context = context_for_file();
  context.arguments = line_.operands;
  context.arguments.insert(context.arguments.end(), line_.arguments.begin(), line_.arguments.end());
  return command.run(context);
}

int Commands::help() {
  std::string text = kUsage;
  replace_all(text, "NAME", layout_.name);
  for (const ExtraCommand& command : hooks_.commands) {
    std::string name =
        command.name +
        std::string(std::max<size_t>(16, command.name.size() + 1) - command.name.size(), ' ');
    text += "  " + name + command.help + "\n";
  }
  std::string options = kOptions;
  replace_all(options, "PREFIX", environment_prefix(layout_.name));
  return print(text + options) ? kExitOk : kExitFailed;
}

// ---- Running a node

int Commands::foreground() {
  become_init_if_process_1();
  prepare_signals();
  mark_inherited_close_on_exec();
  return run_node(layout_, line_.arguments, false, Readiness(), hooks_.run);
}

int Commands::start() {
  std::string error = create_run_dir(layout_);
  if (!error.empty()) {
    complain(layout_.name, "could not start: " + error);
    return kExitFailed;
  }
  prepare_signals();
  StartResult result = start_in_background(
      layout_, line_.timeout.value_or(kStartPatience), [this](Readiness readiness) {
        return run_node(layout_, line_.arguments, true, std::move(readiness), hooks_.run);
      });
  if (result.role == StartResult::Role::node) return result.status;
  if (!result.ready) return start_failed(result);
  std::string line =
      layout_.name + " " + layout_.version + " started (pid " + std::to_string(result.pid) + ")";
  if (!result.message.empty()) line += ": " + result.message;
  print(line + "\n");
  return kExitOk;
}

int Commands::start_failed(const StartResult& result) {
  std::string message = "could not start: " + result.message;
  complain(layout_.name, message);
  // Whoever reads only our standard output (a pipe, $(...)) must learn the reason, too; but not
  // twice.
  struct stat out{};
  struct stat error{};
  bool same = ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &error) == 0 &&
              out.st_dev == error.st_dev && out.st_ino == error.st_ino;
  if (!same && ::isatty(STDOUT_FILENO) == 0) print(layout_.name + ": " + message + "\n");
  return result.status;
}

int Commands::restart() {
  int status = stop();
  return status == kExitOk ? start() : status;
}

// ---- Asking a node

Commands::Asked Commands::ask_once(const AdminRequest& request) {
  Asked asked;
  AdminClient client(layout_.socket_path(), kAnswerPatience);
  switch (client.reach()) {
    case AdminClient::Reach::connected:
      asked.response = client.ask(request);
      asked.pid = client.node_pid();
      if (client.closed()) {
        asked.why = "the node closed the connection, but has not ended";
      } else {
        asked.node = Asked::Node::answered;
      }
      return asked;
    case AdminClient::Reach::failed: asked.why = client.error(); return asked;
    case AdminClient::Reach::nobody: break;
  }
  LockState lock = query_lock(layout_.lock_path());
  if (lock.kind == LockState::Kind::free) {
    asked.node = Asked::Node::not_running;
  } else if (lock.kind == LockState::Kind::unknown) {
    asked.why = lock.error;
  } else {
    std::string who = lock.holder.note.empty() ? "somebody" : lock.holder.note;
    asked.why = layout_.lock_path() + " is locked (by its own word: " + who +
                "), but nobody answers at " + layout_.socket_path();
  }
  return asked;
}

Commands::Asked Commands::ask(const std::string& command, json::object args) {
  AdminRequest request{.command = command, .args = std::move(args)};
  auto deadline = Clock::now() + kBetweenStates;
  while (true) {
    Asked asked = ask_once(request);
    if (asked.node != Asked::Node::unclear || Clock::now() >= deadline) return asked;
    ::poll(nullptr, 0, kPollEveryMs);
  }
}

int Commands::not_running(bool failure) {
  if (line_.json && failure) {
    print(json::serialize(json::object{{"name", layout_.name}, {"state", "not running"}}) + "\n");
  } else {
    std::string line = layout_.name + " is not running\n";
    if (line_.command == "status") {
      print(line);
    } else {
      (void)write_all(STDERR_FILENO, line);
    }
  }
  return failure ? kExitNotRunning : kExitOk;
}

int Commands::unclear(const Asked& asked, int status) {
  complain(layout_.name, asked.why);
  return status;
}

int Commands::print_result(const Asked& asked) {
  if (!asked.response.ok) {
    complain(layout_.name, asked.response.error);
    return kExitFailed;
  }
  const json::value& result = asked.response.result;
  // A string is a finished text, be it JSON that the node wrote itself.
  std::string line = result.is_string() ? std::string(result.as_string()) : json::serialize(result);
  if (line.empty() || line.back() != '\n') line += '\n';
  return print(line) ? kExitOk : kExitFailed;
}

int Commands::status() {
  Asked asked = ask("status", {});
  if (asked.node == Asked::Node::not_running) return not_running(true);
  if (asked.node == Asked::Node::unclear) return unclear(asked, kExitUnknown);
  const json::object* status = asked.response.result.if_object();
  if (!asked.response.ok || status == nullptr) {
    complain(layout_.name, "runs, but does not say how it is: " + asked.response.error);
    return kExitUnknown;
  }
  if (line_.json) return print_result(asked);
  auto word = [status](const char* key) {
    const json::value* value = status->if_contains(key);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
  };
  const json::value* uptime = status->if_contains("uptime_ms");
  const json::value* pid = status->if_contains("pid");
  int64_t milliseconds = uptime && uptime->is_int64() ? uptime->as_int64() : 0;
  int64_t number = asked.pid > 0 ? asked.pid : pid && pid->is_int64() ? pid->as_int64() : 0;
  std::string line = layout_.name + " " + word("version") + " is " + word("state") + " (pid " +
                     std::to_string(number) + ", up " +
                     duration_text(std::chrono::milliseconds(milliseconds)) + ")";
  if (!word("details").empty()) line += ": " + word("details");
  return print(line + "\n") ? kExitOk : kExitFailed;
}

int Commands::pid() {
  Asked asked = ask("pid", {});
  if (asked.node == Asked::Node::not_running) return not_running(true);
  if (asked.node == Asked::Node::unclear) return unclear(asked, kExitUnknown);
  if (asked.pid > 0) return print(std::to_string(asked.pid) + "\n") ? kExitOk : kExitFailed;
  return print_result(asked);
}

int Commands::stop() {
  auto deadline = Clock::now() + line_.timeout.value_or(kStopPatience);
  AdminClient client(layout_.socket_path(), kAnswerPatience);
  AdminResponse response = client.ask({.command = "stop", .args = {}});
  if (client.reach() == AdminClient::Reach::connected && response.ok) {
    client.wait_closed(deadline);
    return wait_for_end(deadline);
  }
  if (client.closed()) return wait_for_end(deadline);  // it ends already
  // No answer: it may not run, or be in the very first or last moments of its life.
  Asked asked = ask("stop", {});
  if (asked.node == Asked::Node::not_running) return not_running(false);
  if (asked.node == Asked::Node::unclear) return unclear(asked, kExitFailed);
  if (!asked.response.ok) return print_result(asked);
  return wait_for_end(deadline);
}

int Commands::wait_for_end(Clock::time_point deadline) {
  LockState lock = query_lock(layout_.lock_path());
  while (lock.kind == LockState::Kind::held && Clock::now() < deadline) {
    ::poll(nullptr, 0, kPollEveryMs);
    lock = query_lock(layout_.lock_path());
  }
  if (lock.kind == LockState::Kind::free) {
    print(layout_.name + " has stopped\n");
    return kExitOk;
  }
  complain(layout_.name, lock.kind == LockState::Kind::unknown
                             ? lock.error
                             : "is still stopping; `status` tells when it is gone");
  return kExitFailed;
}

// ---- Commands without a node

int Commands::version() {
  if (line_.json) {
    json::object answer{
        {"name", layout_.name}, {"version", layout_.version}, {"root", layout_.root}};
    return print(json::serialize(answer) + "\n") ? kExitOk : kExitFailed;
  }
  std::string text = layout_.name + " " + layout_.version + "\n";
  text += std::string("needs glibc 2.36 or later; here: ") + ::gnu_get_libc_version() + "\n";
  if (!hooks_.version_details.empty()) text += hooks_.version_details + "\n";
  return print(text) ? kExitOk : kExitFailed;
}

CommandContext Commands::context_for_file() {
  CommandContext context{
      .layout = layout_, .arguments = line_.arguments, .json = line_.json, .no_env = line_.no_env};
  return context;
}

int Commands::check() {
  if (!line_.operands.empty()) {
    line_.config = line_.operands[0];
    std::string error = find_layout_for(false);
    if (!error.empty()) return usage_error(error);
  }
  if (!hooks_.check) return usage_error("this program has nothing to check");
  if (layout_.config.empty()) return usage_error("'check' expects a configuration file, got none");
  return hooks_.check(context_for_file());
}

int Commands::tree() {
  if (!line_.operands.empty()) {
    line_.config = line_.operands[0];
    std::string error = find_layout_for(false);
    if (!error.empty()) return usage_error(error);
    if (!hooks_.describe_tree) return usage_error("this program cannot read a tree from a file");
    return hooks_.describe_tree(context_for_file());
  }
  if (!layout_.managed())
    return usage_error("'tree' expects a FILE, as this program has no run directory");
  Asked asked = ask("tree", {{"json", line_.json}});
  if (asked.node == Asked::Node::not_running) return not_running(true);
  if (asked.node == Asked::Node::unclear) return unclear(asked, kExitUnknown);
  return print_result(asked);
}

int Commands::rpc() {
  std::vector<std::string> words = line_.operands;
  words.insert(words.end(), line_.arguments.begin(), line_.arguments.end());
  if (words.empty()) return usage_error("'rpc' expects a command, got none");
  json::array arguments(words.begin() + 1, words.end());
  Asked asked = ask("rpc", {{"command", words[0]}, {"arguments", std::move(arguments)}});
  if (asked.node == Asked::Node::not_running) return not_running(true);
  if (asked.node == Asked::Node::unclear) return unclear(asked, kExitUnknown);
  return print_result(asked);
}

int Commands::admin() {
  if (line_.operands.empty()) return usage_error("'admin' expects the node's command, got none");
  json::object args;
  if (line_.operands.size() > 1) {
    boost::system::error_code error;
    json::value parsed = json::parse(line_.operands[1], error);
    if (error || !parsed.is_object()) {
      return usage_error("'admin' expects its arguments as a JSON object, got '" +
                         line_.operands[1] + "'");
    }
    args = parsed.as_object();
  }
  Asked asked = ask(line_.operands[0], std::move(args));
  if (asked.node == Asked::Node::not_running) return not_running(true);
  if (asked.node == Asked::Node::unclear) return unclear(asked, kExitUnknown);
  return print_result(asked);
}

}  // namespace

int run_commands(const NodeHooks& hooks, int argc, const char* const* argv) {
  secure_standard_streams();
  repair_umask();
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);  // `tree | true` ends quietly
  Outcome<CommandLine> line =
      parse_command_line(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (!line.ok()) {
    complain(hooks.name.empty() ? "otp" : hooks.name, line.error + " (see --help)");
    return kExitUsage;
  }
  return Commands(hooks, std::move(*line.value)).run();
}

}  // namespace otp::release
