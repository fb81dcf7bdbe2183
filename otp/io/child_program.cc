#include "otp/io/child_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "otp/io/internal/guardian_wire.h"

namespace otp::io {
namespace {

using internal::WireMessage;
using internal::WireOutcome;
using Clock = std::chrono::steady_clock;

constexpr size_t kRequestsWaitingMax = 1024;

void ignore_sigpipe() {
  struct sigaction current{};
  ::sigaction(SIGPIPE, nullptr, &current);
  if (current.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

std::string this_program() {
  if (::access("/proc/self/exe", X_OK) == 0) return "/proc/self/exe";
  // No procfs: the path this program was started by, which the kernel left in our memory.
  const auto path = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  return path == nullptr ? std::string() : std::string(path);
}

/// Waits for the lock of `file`, with a look every few ms, as flock() itself knows no deadline. No
/// descriptor when there can be no lock, for the reason `why`. Error: it is held until `deadline`.
std::variant<Descriptor, SystemError> take_lock(const std::string& file,
                                                Clock::time_point deadline,
                                                std::optional<SystemError>& why) {
  // To read, as a file that is there can be locked also where nothing can be written. Above the
  // numbers under which a guardian gets its descriptors.
  constexpr int kLowest = 16;
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  Descriptor lock(opened ? ::fcntl(opened.get(), F_DUPFD_CLOEXEC, kLowest) : -1);
  if (!lock) {
    why = SystemError::last("open " + file);
    return lock;
  }
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      why = SystemError::last("lock " + file);
      return Descriptor();
    }
    if (Clock::now() >= deadline) {
      return SystemError{.code = ETIMEDOUT,
                         .what = "wait for the end of an earlier life's commands, whose guardian "
                                 "locks " +
                                 file};
    }
    constexpr int kLookEveryMs = 2;
    ::poll(nullptr, 0, kLookEveryMs);
  }
  return lock;
}

/// Starts the program with `socket` and `lock` (-1: none) as its descriptors 3 and 4 and next to no
/// environment.
int spawn_guardian(const std::string& program, int socket, int lock, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, socket, internal::kGuardianSocket);
  if (lock >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, lock, internal::kGuardianLock);
  } else {
    ::posix_spawn_file_actions_addclose(&actions, internal::kGuardianLock);
  }
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string argument = internal::kGuardianArgument;
  std::string name = "otp-guardian";
  char* argv[] = {name.data(), argument.data(), nullptr};
  char* env[] = {nullptr};
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv, env);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

/// Milliseconds until `deadline` for poll(), at least 0.
int remaining_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

/// Waits for a child of ours to end, looking every few ms; nobody else may wait for it.
bool collect_child(pid_t pid, Clock::time_point deadline) {
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (Clock::now() >= deadline) return false;
    constexpr int kLookEveryMs = 2;
    ::poll(nullptr, 0, kLookEveryMs);
  }
  return true;  // collected, or ECHILD: somebody ignores SIGCHLD and it is gone
}

bool holds_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace

std::string ChildExit::to_string() const {
  if (how == How::lost) return "lost: the process that watched it is gone";
  if (how == How::exited) return "exit status " + std::to_string(code);
  const char* name = ::sigdescr_np(code);
  return "killed by signal " + std::to_string(code) +
         (name == nullptr ? "" : " (" + std::string(name) + ")");
}

std::variant<ChildPrograms, SystemError> ChildPrograms::launch(Options options) {
  ignore_sigpipe();
  ChildPrograms programs;
  Descriptor lock;
  if (!options.lock.empty()) {
    auto taken = take_lock(options.lock, Clock::now() + options.lock_timeout, programs.unlocked_);
    if (auto* error = std::get_if<SystemError>(&taken)) return std::move(*error);
    lock = std::get<Descriptor>(std::move(taken));
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return SystemError::last("make a socket pair");
  }
  programs.socket_ = Descriptor(ends[0]);
  Descriptor theirs(ends[1]);
  const int buffer_bytes = 2 * static_cast<int>(internal::kDatagramBytesMax);
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
  const std::string program = options.program.empty() ? this_program() : options.program;
  const int error = spawn_guardian(program, theirs.get(), lock.get(), programs.keeper_);
  if (error != 0) {
    programs.keeper_ = -1;
    return SystemError{.code = error, .what = "start the guardian " + program};
  }
  theirs.reset();
  programs.boot_ = boot_id();
  if (auto failure = programs.await_hello(options.start_timeout)) return *failure;
  return programs;
}

std::optional<SystemError> ChildPrograms::await_hello(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  int ready = 0;
  while ((ready = ::poll(&wait, 1, remaining_ms(deadline))) < 0 && errno == EINTR) {}
  std::vector<Descriptor> none;
  if (ready > 0 && internal::wire_receive(socket_.get(), buffer_, none) == WireOutcome::done) {
    const auto hello = WireMessage::decode(buffer_);
    if (hello && hello->kind == WireMessage::Kind::hello) {
      guardian_ = hello->pid;
      return std::nullopt;
    }
  }
  // It may be a program that does not know its role: it must not live on as a second service.
  ::kill(keeper_, SIGKILL);
  return SystemError{.code = ready > 0 ? EPROTO : ETIMEDOUT,
                     .what = "wait for the guardian (does main call guardian_main?)"};
}

ChildPrograms& ChildPrograms::operator=(ChildPrograms&& other) noexcept {
  if (this == &other) return *this;
  stop();
  socket_ = std::move(other.socket_);
  unlocked_ = std::move(other.unlocked_);
  keeper_ = std::exchange(other.keeper_, -1);
  guardian_ = std::exchange(other.guardian_, -1);
  boot_ = std::move(other.boot_);
  requests_ = std::move(other.requests_);
  commands_ = std::move(other.commands_);
  return *this;
}

ChildPrograms::~ChildPrograms() {
  if (keeper_ > 0) stop();
}

bool ChildPrograms::stop(std::chrono::milliseconds patience) {
  socket_.reset();
  requests_.clear();
  commands_.clear();
  if (keeper_ <= 0) return true;
  const bool gone = collect_child(keeper_, Clock::now() + patience);
  if (gone) keeper_ = guardian_ = -1;
  return gone;
}

std::variant<ChildStreams, SystemError> ChildPrograms::start(uint64_t id,
                                                             const ChildCommand& command) {
  const auto refuse = [&](int code) {
    return SystemError{
        .code = code,
        .what = "start " + (command.argv.empty() ? std::string("a command") : command.argv[0])};
  };
  const bool bad = command.argv.empty() || command.argv[0].empty() || commands_.contains(id) ||
                   holds_nul(command.directory) || std::ranges::any_of(command.argv, holds_nul) ||
                   std::ranges::any_of(command.env, holds_nul);
  if (bad) return refuse(EINVAL);
  if (lost()) return refuse(EPIPE);
  if (requests_.size() >= kRequestsWaitingMax) return refuse(EAGAIN);
  WireMessage message{.kind = WireMessage::Kind::start,
                      .id = id,
                      .text = command.directory,
                      .argv = command.argv,
                      .env = command.env};
  Request request{.bytes = message.encode()};
  if (request.bytes.size() > internal::kDatagramBytesMax) return refuse(E2BIG);
  Pipe pipes[internal::kStandardStreams];
  for (Pipe& pipe : pipes) {
    auto made = make_pipe();
    if (const auto* error = std::get_if<SystemError>(&made)) return refuse(error->code);
    pipe = std::get<Pipe>(std::move(made));
  }
  ChildStreams ours{.input = std::move(pipes[0].write_end),
                    .output = std::move(pipes[1].read_end),
                    .error = std::move(pipes[2].read_end)};
  for (const int fd : {ours.input.get(), ours.output.get(), ours.error.get()}) set_nonblocking(fd);
  request.streams.push_back(std::move(pipes[0].read_end));
  request.streams.push_back(std::move(pipes[1].write_end));
  request.streams.push_back(std::move(pipes[2].write_end));
  commands_[id] = {};
  requests_.push_back(std::move(request));
  // Most of the time it goes out at once. If the guardian is gone, on_ready() will find out and
  // tell.
  if (requests_.size() == 1 && internal::wire_send(socket_.get(), requests_[0].bytes,
                                                   requests_[0].streams) == WireOutcome::done) {
    requests_.pop_front();
  }
  return ours;
}

void ChildPrograms::signal(uint64_t id, int signal_number) {
  if (lost() || !commands_.contains(id)) return;
  const WireMessage message{.kind = WireMessage::Kind::signal, .id = id, .code = signal_number};
  requests_.push_back({.bytes = message.encode(), .streams = {}});
  if (requests_.size() == 1 &&
      internal::wire_send(socket_.get(), requests_[0].bytes, {}) == WireOutcome::done) {
    requests_.pop_front();
  }
}

std::vector<ChildEvent> ChildPrograms::on_ready() {
  std::vector<ChildEvent> events;
  if (!lost()) flush(events);
  if (!lost()) receive(events);
  return events;
}

void ChildPrograms::flush(std::vector<ChildEvent>& events) {
  while (!requests_.empty()) {
    const Request& next = requests_.front();
    const WireOutcome outcome = internal::wire_send(socket_.get(), next.bytes, next.streams);
    if (outcome == WireOutcome::would_block) return;
    if (outcome == WireOutcome::closed) return lose(events);
    requests_.pop_front();
  }
}

void ChildPrograms::receive(std::vector<ChildEvent>& events) {
  std::vector<Descriptor> none;
  while (true) {
    const WireOutcome outcome = internal::wire_receive(socket_.get(), buffer_, none);
    if (outcome == WireOutcome::would_block) return;
    const auto message = outcome == WireOutcome::done ? WireMessage::decode(buffer_) : std::nullopt;
    if (!message) return lose(events);
    const auto found = commands_.find(message->id);
    if (found == commands_.end()) continue;
    switch (message->kind) {
      case WireMessage::Kind::started:
        found->second = {.pid = message->pid,
                         .start_ticks = message->start_ticks,
                         .session = message->session,
                         .boot = boot_};
        events.push_back(ChildStarted{.id = message->id, .process = found->second});
        break;
      case WireMessage::Kind::failed:
        commands_.erase(found);
        events.push_back(ChildFailed{
            .id = message->id, .error = {.code = message->code, .what = "start the command"}});
        break;
      case WireMessage::Kind::exited: {
        using How = ChildExit::How;
        commands_.erase(found);
        const ChildExit exit{.how = message->by_signal ? How::signalled : How::exited,
                             .code = message->code};
        events.push_back(ChildEnded{.id = message->id, .exit = exit});
        break;
      }
      case WireMessage::Kind::hello:
      case WireMessage::Kind::start:
      case WireMessage::Kind::signal: break;
    }
  }
}

void ChildPrograms::lose(std::vector<ChildEvent>& events) {
  // Somebody killed the guardian itself. Its keeper kills whatever it has left; the groups that we
  // know are gone at once.
  socket_.reset();
  requests_.clear();
  for (const auto& [id, process] : commands_) {
    // One whose start was asked for and not answered is lost too: that was not the command's fault.
    if (process.pid != 0) kill_leftovers(process);
    events.push_back(ChildEnded{.id = id, .exit = {.how = ChildExit::How::lost}});
  }
  commands_.clear();
  stop();
  events.push_back(GuardianLost{});
}

}  // namespace otp::io
