#include "otp/release/node.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>

#include "otp/release/admin_client.h"
#include "otp/release/instance_lock.h"
#include "otp/release/signals.h"
#include "otp/release/std_streams.h"

namespace otp::release {
namespace {

// A node that was killed holds its lock until the kernel has taken its memory apart, and one that
// has just answered `stop` until it has left main: such a holder no longer answers, so it is waited
// for.
constexpr std::chrono::milliseconds kHolderMayLeaveWithin{2'000};
constexpr std::chrono::milliseconds kHolderAnswersWithin{500};
constexpr int kRetryEveryMs = 20;
constexpr std::chrono::milliseconds kLastWordsWithin{1'000};

bool is_stopping(const AdminResponse& status) {
  const json::object* members = status.result.if_object();
  const json::value* state = members ? members->if_contains("state") : nullptr;
  return state != nullptr && *state == "stopping";
}

}  // namespace

// Threads: the first group is constant once the hook runs; the second is guarded by `mutex`, which
// is never held while something is called; the third by `calls`, which is held during each
// callback, so that withdrawing waits for it. Where both are taken, `calls` is first.
struct RunContext::State {
  using Command = std::function<void(AdminRequest, AdminReply)>;

  Layout layout;
  std::vector<std::string> arguments;
  bool in_background = false;
  Clock::time_point started = Clock::now();
  AdminServer* admin = nullptr;

  mutable std::mutex mutex;
  Readiness readiness;
  std::string details;
  bool is_ready = false;
  bool stop_requested = false;

  std::recursive_mutex calls;  // recursive: a command may call request_stop()
  std::function<void()> stop_callback;
  std::function<json::object()> status_callback;
  std::function<void(const std::string&)> report_callback;
  std::map<std::string, Command> commands;

  void report_line(const std::string& line) {
    std::lock_guard lock(calls);
    if (report_callback) return report_callback(line);
    report(layout.name, line);
  }
};

RunContext::RunContext(Layout layout, std::vector<std::string> arguments, bool in_background,
                       Readiness readiness)
    : state_(std::make_unique<State>()) {
  state_->layout = std::move(layout);
  state_->arguments = std::move(arguments);
  state_->in_background = in_background;
  state_->readiness = std::move(readiness);
}
RunContext::~RunContext() = default;

const Layout& RunContext::layout() const { return state_->layout; }
const std::vector<std::string>& RunContext::arguments() const { return state_->arguments; }
bool RunContext::in_background() const { return state_->in_background; }

void RunContext::ready(const std::string& details) {
  std::lock_guard lock(state_->mutex);
  state_->is_ready = true;
  state_->details = details;
  state_->readiness.ready(details);
}

void RunContext::fail(const std::string& reason) {
  {
    std::lock_guard lock(state_->mutex);
    state_->readiness.failed(reason);
  }
  report(state_->layout.name, reason, kLastWordsWithin);
}

bool RunContext::stop_requested() const {
  std::lock_guard lock(state_->mutex);
  return state_->stop_requested;
}

void RunContext::request_stop() {
  {
    std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->stop_requested, true)) return;
  }
  std::lock_guard lock(state_->calls);
  auto callback = std::exchange(state_->stop_callback, nullptr);
  if (callback) callback();
}

NodeCallbacks::NodeCallbacks(RunContext& context) : state_(*context.state_) {}

NodeCallbacks::~NodeCallbacks() {
  std::lock_guard lock(state_.calls);
  state_.stop_callback = nullptr;
  state_.status_callback = nullptr;
  state_.report_callback = nullptr;
  state_.commands.clear();
}

void NodeCallbacks::on_stop(std::function<void()> callback) {
  std::lock_guard lock(state_.calls);
  bool requested = false;
  {
    std::lock_guard inner(state_.mutex);
    requested = state_.stop_requested;
  }
  // When it was requested, request_stop() has taken what there was, or waits for `calls` to find
  // nothing.
  if (requested) return callback();
  state_.stop_callback = std::move(callback);
}

void NodeCallbacks::on_status(std::function<json::object()> callback) {
  std::lock_guard lock(state_.calls);
  state_.status_callback = std::move(callback);
}

void NodeCallbacks::on_report(std::function<void(const std::string&)> callback) {
  std::lock_guard lock(state_.calls);
  state_.report_callback = std::move(callback);
}

void NodeCallbacks::on_command(std::string command,
                               std::function<AdminResponse(const AdminRequest&)> callback) {
  on_command_later(std::move(command), answer_at_once(std::move(callback)));
}

void NodeCallbacks::on_command_later(std::string command,
                                     std::function<void(AdminRequest, AdminReply)> callback) {
  if (state_.admin == nullptr) return;
  {
    std::lock_guard lock(state_.calls);
    state_.commands[command] = std::move(callback);
  }
  state_.admin->on_later(command, [&state = state_](AdminRequest request, AdminReply reply) {
    std::lock_guard lock(state.calls);
    auto found = state.commands.find(request.command);
    if (found == state.commands.end()) {
      return reply.answer(AdminResponse::failure("the node is ending"));
    }
    found->second(std::move(request), std::move(reply));
  });
}

/// The steps of run_node() and what they leave behind, undone in reverse.
class NodeRunner {
 public:
  explicit NodeRunner(RunContext& context) : context_(context) {}

  int run(const std::function<int(RunContext&)>& hook);

 private:
  const Layout& layout() const { return context_.layout(); }
  int prepare();
  int take_lock();
  int refuse(const std::string& holder);
  bool wait_for_lock(LockAttempt& attempt, std::string& holder);
  int write_notes();
  void add_commands();
  AdminResponse status() const;
  std::function<void()> keep_log_bounded() const;
  int fail(const std::string& reason) {
    context_.fail(reason);
    return kExitFailed;
  }

  RunContext& context_;
  InstanceLock lock_;
  AdminServer admin_;
  SignalWatcher signals_;
};

int NodeRunner::run(const std::function<int(RunContext&)>& hook) {
  int status = prepare();
  if (status == kExitOk) {
    try {
      status = hook(context_);
    } catch (const std::exception& fault) {
      status = fail(fault.what());
    }
  }
  signals_.stop();
  admin_.stop();
  if (lock_.held()) remove_pid_file(layout().pid_path());
  lock_.keep_for_life();  // what runs after us in this process is still this node
  return status;
}

int NodeRunner::prepare() {
  if (layout().managed()) {
    std::string error = create_run_dir(layout());
    if (!error.empty()) return fail(error);
    int status = take_lock();
    if (status == kExitOk) status = write_notes();
    if (status != kExitOk) return status;
    if (::chdir(layout().run_dir.c_str()) != 0) {
      return fail(system_error("enter", layout().run_dir, errno));
    }
    error = admin_.open(layout().socket_path());
    if (!error.empty()) return fail(error);
    add_commands();
    error = admin_.start();
    if (!error.empty()) return fail(error);
    context_.state_->admin = &admin_;
  }
  std::string error = signals_.start({
      .stop = [this](const char*) { context_.request_stop(); },
      .report = [this](const std::string& line) { context_.state_->report_line(line); },
      .tick = keep_log_bounded(),
  });
  return error.empty() ? kExitOk : fail(error);
}

/// In the background the log is ours alone; elsewhere whoever reads our output looks after it.
std::function<void()> NodeRunner::keep_log_bounded() const {
  if (!context_.in_background()) return nullptr;
  LogBounds bounds;
  const std::string prefix = environment_prefix(layout().name);
  if (const char* most = std::getenv((prefix + "_LOG_BYTES").c_str())) {
    char* end = nullptr;
    const long long bytes = std::strtoll(most, &end, 10);
    if (bytes > 0 && *end == '\0') bounds.bytes_max = bytes;
  }
  return [log = layout().log_path(), bounds] { bound_log(log, bounds); };
}

int NodeRunner::take_lock() {
  LockAttempt attempt = InstanceLock::acquire(layout().lock_path());
  std::string holder;
  if (attempt.holder && !wait_for_lock(attempt, holder)) return refuse(holder);
  if (!attempt.error.empty()) return fail(attempt.error);
  lock_ = std::move(attempt.lock);
  return kExitOk;
}

/// False: a living node has the lock, and `holder` says what is known of it.
bool NodeRunner::wait_for_lock(LockAttempt& attempt, std::string& holder) {
  auto deadline = Clock::now() + kHolderMayLeaveWithin;
  while (attempt.holder) {
    // Connecting is not enough: the socket of a killed node takes clients until the node is taken
    // apart.
    AdminClient client(layout().socket_path(), kHolderAnswersWithin);
    AdminResponse answer = client.ask({.command = "status"});
    holder = attempt.holder->note;
    if (client.node_pid() > 0) holder = "pid " + std::to_string(client.node_pid());
    if (answer.ok) {
      if (is_stopping(answer)) holder += ", stopping";
      return false;
    }
    holder += (holder.empty() ? "" : ", ") + std::string("not answering on its admin socket");
    if (Clock::now() >= deadline) return false;
    ::poll(nullptr, 0, kRetryEveryMs);
    attempt = InstanceLock::acquire(layout().lock_path());
  }
  return true;
}

int NodeRunner::refuse(const std::string& holder) {
  context_.fail("already running (" + holder + "; " + layout().lock_path() + " is locked)");
  return kExitAlreadyRunning;
}

int NodeRunner::write_notes() {
  std::string error = lock_.write_note("pid " + std::to_string(::getpid()));
  if (!error.empty()) return fail(error);
  error = write_pid_file(layout().pid_path(), ::getpid());
  if (error.empty()) return kExitOk;
  struct stat info{};
  bool folder = ::lstat(layout().pid_path().c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (!folder) return fail(error);
  report(layout().name, error + "; going on, as only people read it");
  return kExitOk;
}

void NodeRunner::add_commands() {
  admin_.on("ping", [](const AdminRequest&) { return AdminResponse::success("pong"); });
  admin_.on("pid", [](const AdminRequest&) {
    return AdminResponse::success(static_cast<int64_t>(::getpid()));
  });
  admin_.on("status", [this](const AdminRequest&) { return status(); });
  admin_.on("stop", [this](const AdminRequest&) {
    if (!context_.stop_requested()) {
      context_.state_->report_line("stopping on the operator's command");
    }
    context_.request_stop();
    return status();
  });
}

AdminResponse NodeRunner::status() const {
  RunContext::State& state = *context_.state_;
  json::object answer;
  {
    std::lock_guard lock(state.mutex);
    const char* word = state.stop_requested ? "stopping" : state.is_ready ? "running" : "starting";
    auto uptime =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - state.started);
    answer = {{"name", layout().name}, {"version", layout().version}, {"pid", ::getpid()},
              {"state", word},         {"uptime_ms", uptime.count()}, {"details", state.details},
              {"root", layout().root}, {"run_dir", layout().run_dir}};
  }
  // Not waited for: a callback that is stuck against its contract must not silence `status`.
  std::unique_lock calls(state.calls, std::try_to_lock);
  if (calls && state.status_callback) {
    for (auto& [key, value] : state.status_callback()) answer[key] = value;
  }
  return AdminResponse::success(std::move(answer));
}

int run_node(const Layout& layout, std::vector<std::string> arguments, bool in_background,
             Readiness readiness, const std::function<int(RunContext&)>& run) {
  repair_umask();
  RunContext context(layout, std::move(arguments), in_background, std::move(readiness));
  NodeRunner runner(context);
  return runner.run(run);
}

}  // namespace otp::release
