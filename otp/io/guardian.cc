#include "otp/io/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "otp/io/descriptor.h"
#include "otp/io/internal/guardian_wire.h"
#include "otp/io/process_identity.h"

namespace otp::io {
namespace {

using internal::kGuardianLock;
using internal::kGuardianSocket;
using internal::kStandardStreams;
using internal::WireMessage;
using internal::WireOutcome;

// While this many answers wait for the node to read them, no new command is started.
constexpr size_t kAnswersWaitingMax = 1024;
// Processes that cannot be killed (stuck in the kernel) are given up after this long.
constexpr auto kEndPatience = std::chrono::seconds(30);

/// posix_spawn's two argument objects, freed together.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// The file that `name` means to execvp, by the PATH of the *command's* environment. A name with a
/// slash stands for itself. Empty, with errno set, when there is none.
std::string find_program(const std::string& name, const std::vector<std::string>& env) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
  }
  int error = ENOENT;
  while (!name.empty()) {
    const size_t end = path.find(':');
    std::string file = std::string(path.substr(0, end)) + "/" + name;
    struct stat info{};
    if (file[0] == '/' && ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      if (::access(file.c_str(), X_OK) == 0) return file;
      error = errno;
    }
    if (end == std::string_view::npos) break;
    path.remove_prefix(end + 1);
  }
  errno = error;
  return {};
}

/// Starts `request` with `streams` as descriptors 0, 1, 2. Returns 0 and sets `pid`, or an errno.
int spawn_command(const WireMessage& request, const std::vector<Descriptor>& streams, pid_t& pid) {
  if (request.argv.empty()) return EINVAL;
  const std::string program = find_program(request.argv[0], request.env);
  if (program.empty()) return errno;
  SpawnSettings settings;
  if (!request.text.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&settings.actions, request.text.c_str());
  }
  for (size_t i = 0; i < kStandardStreams; ++i) {
    ::posix_spawn_file_actions_adddup2(&settings.actions, streams[i].get(), static_cast<int>(i));
  }
  // Truly all: sigfillset leaves out the two that glibc uses, and its posix_spawn would then have
  // the command ignore them.
  sigset_t all, none;
  std::memset(&all, 0xff, sizeof all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
  ::posix_spawnattr_setsigmask(&settings.attributes, &none);
  ::posix_spawnattr_setpgroup(&settings.attributes, 0);
  ::posix_spawnattr_setflags(
      &settings.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  return ::posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes,
                       pointers(request.argv).data(), pointers(request.env).data());
}

class Guardian {
 public:
  int run();

 private:
  struct Command {
    uint64_t id = 0;
    uint64_t start_ticks = 0;
  };

  void set_up();
  void serve();
  bool read_requests();
  void start(const WireMessage& request, const std::vector<Descriptor>& streams);
  void signal_group(uint64_t id, int signal);
  void collect();
  void kill_strangers();
  std::vector<pid_t> direct_children() const;
  void answer(const WireMessage& message);
  bool flush();
  void end_all();

  Descriptor signals_;
  Descriptor node_;
  Descriptor keeper_;
  std::string children_file_;                    // empty: this kernel has none, look through /proc
  std::unordered_map<pid_t, Command> commands_;  // those not collected yet, by pid = process group
  std::unordered_map<uint64_t, pid_t> by_id_;
  std::deque<std::string> answers_;
  std::string buffer_;
};

void Guardian::set_up() {
  // Descriptors that the node may have left open are none of ours, nor are its standard streams:
  // whoever reads those waits until everybody has closed them.
  if (::syscall(SYS_close_range, kGuardianLock + 1, ~0U, 0U) != 0) {
    const long end = ::sysconf(_SC_OPEN_MAX);
    for (int fd = kGuardianLock + 1; fd < end; ++fd) ::close(fd);
  }
  ::fcntl(kGuardianSocket, F_SETFD, FD_CLOEXEC);
  ::fcntl(kGuardianLock, F_SETFD, FD_CLOEXEC);  // held by both of us, and released by our ends
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kGuardianSocket; ++fd) ::dup2(null, fd);
  if (null > kGuardianSocket) ::close(null);

  ::setsid();
  ::umask(022);
  ::prctl(PR_SET_NAME, "otp-guardian");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::signal(SIGCHLD, SIG_DFL);  // if it was ignored, statuses would be lost
  signals_ = Descriptor(::signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC));
  // The socket's end tells that the node is gone. This tells it too if a copy of the socket's other
  // end has escaped into some third process. Missing (valgrind, old kernels): the socket alone.
  node_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, ::getppid(), 0U)));
}

void look_after_orphans(std::string& children_file) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  children_file = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  if (::access(children_file.c_str(), R_OK) != 0) children_file.clear();
}

int Guardian::run() {
  set_up();
  const pid_t keeper = ::getpid();
  const pid_t server = ::fork();
  if (server < 0) return 1;
  look_after_orphans(children_file_);
  if (server == 0) {
    ::setsid();
    keeper_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, keeper, 0U)));
    if (::getppid() == keeper) serve();
  } else {
    ::close(kGuardianSocket);
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(server), &ended, WEXITED) != 0 && errno == EINTR) {}
  }
  end_all();
  return 0;
}

void Guardian::serve() {
  answer({.kind = WireMessage::Kind::hello, .pid = ::getpid(), .session = ::getsid(0)});
  bool node_lives = true;
  while (node_lives) {
    const bool may_read = answers_.size() < kAnswersWaitingMax;
    const int events = (may_read ? POLLIN : 0) | (answers_.empty() ? 0 : POLLOUT);
    pollfd waits[] = {{.fd = kGuardianSocket, .events = static_cast<short>(events), .revents = 0},
                      {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                      {.fd = node_.get(), .events = POLLIN, .revents = 0},
                      {.fd = keeper_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(waits, std::size(waits), -1) < 0) continue;
    collect();
    // Checked before the requests: those of a node that is gone must not be carried out any more.
    if ((waits[0].revents & (POLLHUP | POLLERR)) != 0) break;
    if (waits[2].revents != 0 || waits[3].revents != 0) break;
    if ((waits[0].revents & POLLOUT) != 0) node_lives = flush();
    if ((waits[0].revents & POLLIN) != 0) node_lives = read_requests() && node_lives;
  }
}

bool Guardian::read_requests() {
  constexpr int kRequestsPerRound = 64;
  std::vector<Descriptor> streams;
  for (int i = 0; i < kRequestsPerRound && answers_.size() < kAnswersWaitingMax; ++i) {
    switch (internal::wire_receive(kGuardianSocket, buffer_, streams)) {
      case WireOutcome::would_block: return true;
      case WireOutcome::closed: return false;
      case WireOutcome::done: break;
    }
    const auto request = WireMessage::decode(buffer_);
    if (!request) return false;  // not our node: end as if it were gone
    if (request->kind == WireMessage::Kind::start) start(*request, streams);
    if (request->kind == WireMessage::Kind::signal) signal_group(request->id, request->code);
  }
  return true;
}

void Guardian::start(const WireMessage& request, const std::vector<Descriptor>& streams) {
  WireMessage failed{.kind = WireMessage::Kind::failed, .id = request.id};
  if (streams.size() != kStandardStreams) {
    failed.code = EMFILE;  // the kernel drops descriptors for which we have no number left
    return answer(failed);
  }
  pid_t pid = -1;
  failed.code = spawn_command(request, streams, pid);
  if (failed.code != 0) return answer(failed);
  const auto stat = process_stat(pid);
  const uint64_t ticks = stat ? stat->start_ticks : 0;
  commands_[pid] = {.id = request.id, .start_ticks = ticks};
  by_id_[request.id] = pid;
  answer({.kind = WireMessage::Kind::started,
          .id = request.id,
          .pid = pid,
          .session = ::getsid(0),
          .start_ticks = ticks});
}

void Guardian::signal_group(uint64_t id, int signal) {
  const auto found = by_id_.find(id);
  if (found != by_id_.end()) ::kill(-found->second, signal);
}

// (G1) A command's pid stays in commands_ until it is collected, and until then the kernel gives
//      neither that pid nor that group number to anybody else: kill(-pid) is exact.
// (G2) So the rest of the group is killed between seeing the end (WNOWAIT) and collecting it.
void Guardian::collect() {
  signalfd_siginfo drained[16];
  while (::read(signals_.get(), drained, sizeof drained) > 0) {}
  bool any = false;
  while (true) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    any = true;
    const pid_t pid = info.si_pid;
    const auto found = commands_.find(pid);
    if (found != commands_.end()) ::kill(-pid, SIGKILL);  // (G2)
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0) break;
    if (found == commands_.end()) continue;  // a stranger: an orphan that some command left
    answer({.kind = WireMessage::Kind::exited,
            .by_signal = info.si_code != CLD_EXITED,
            .id = found->second.id,
            .pid = pid,
            .code = info.si_status});
    by_id_.erase(found->second.id);
    commands_.erase(found);
  }
  if (any) kill_strangers();
}

void Guardian::kill_strangers() {
  uint64_t oldest = UINT64_MAX;
  for (const auto& [pid, command] : commands_) oldest = std::min(oldest, command.start_ticks);
  for (const pid_t pid : direct_children()) {
    if (commands_.contains(pid)) continue;
    const auto stat = process_stat(pid);
    if (!stat || stat->state == 'Z' || commands_.contains(stat->group)) continue;
    if (stat->start_ticks >= oldest) continue;  // a running command may be its origin
    ::kill(pid, SIGKILL);
  }
}

std::vector<pid_t> Guardian::direct_children() const {
  std::vector<pid_t> children;
  if (children_file_.empty()) {
    const pid_t self = ::getpid();
    for (const ProcessStat& process : all_processes()) {
      if (process.parent == self) children.push_back(process.pid);
    }
    return children;
  }
  std::string text;
  if (!read_small_file(children_file_, text)) return children;
  for (char* at = text.data(); *at != '\0';) {
    char* end = at;
    const long pid = std::strtol(at, &end, 10);
    if (end == at) break;
    children.push_back(static_cast<pid_t>(pid));
    at = end;
  }
  return children;
}

void Guardian::answer(const WireMessage& message) {
  answers_.push_back(message.encode());
  flush();
}

bool Guardian::flush() {
  while (!answers_.empty()) {
    const WireOutcome outcome = internal::wire_send(kGuardianSocket, answers_.front(), {});
    if (outcome == WireOutcome::would_block) return true;
    if (outcome == WireOutcome::closed) return false;
    answers_.pop_front();
  }
  return true;
}

void Guardian::end_all() {
  const auto deadline = std::chrono::steady_clock::now() + kEndPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const auto& [pid, command] : commands_) ::kill(-pid, SIGKILL);
    // Whoever loses its parent becomes our child: level by level every descendant comes by here.
    for (const pid_t pid : direct_children()) ::kill(pid, SIGKILL);
    siginfo_t info{};
    while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
      commands_.erase(info.si_pid);
      info = {};
    }
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD) return;
    constexpr int kRoundMs = 5;
    pollfd wait{.fd = signals_.get(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, kRoundMs);
    signalfd_siginfo drained[16];
    while (::read(signals_.get(), drained, sizeof drained) > 0) {}
  }
}

}  // namespace

bool is_guardian(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == internal::kGuardianArgument;
}

int guardian_main() { return Guardian().run(); }

}  // namespace otp::io
