#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "otp/async/async.h"
#include "otp/behaviour/gen_server.h"
#include "otp/io/child_pipes.h"
#include "otp/io/child_program.h"
#include "otp/io/internal/child_news.h"
#include "otp/io/simulated_programs.h"

/// Child programs for processes.
///
///     auto programs = (co_await otp::start_link<otp::io::ChildServer>()).or_exit();
///     auto started = co_await otp::io::ChildProgram::start(
///         programs, {.argv = {"sha256sum"}, .env = {"PATH=/usr/bin"}}, {.input = "hello"});
///     auto& program = std::get<otp::io::ChildProgram>(started);       // or a SystemError
///     std::optional<otp::io::ChildOutcome> outcome = co_await program.wait(10s);
///     if (!outcome) {                                                  // it takes too long
///       program.signal(SIGTERM);
///       outcome = co_await program.wait(2s);
///     }
///
/// Input is written and output read at the same time, as far as each side goes on. When the process
/// that started a program ends, by whatever reason, or drops the object, the program's whole
/// process group is killed; when the node ends, its guardian does it (guardian.h).
///
/// In a Simulator what programs do is scripted (simulated_programs.h).
namespace otp::io {

namespace internal {
class Spawner;
class ChildPump;

/// The answer to a start: the program, or why there is none.
struct ChildBirth {
  std::optional<SystemError> failed = {};
  uint64_t id = 0;
  ProcessIdentity process = {};
  ChildStreams streams = {};
  std::optional<ScriptedChild> scripted = {};  // in a simulation
};
struct ChildServerReady {};  // from the poller: there are events
}  // namespace internal

/// What the process that started a program is told of it; see ChildProgram::take.
using ChildNews = internal::ChildNews;

/// Owns the connection to the guardian; one under a supervisor is enough for a node. When the
/// guardian is lost it ends with {guardian,lost}, to be started again.
class ChildServer {
 public:
  struct Args {
    std::string guardian = {};  ///< the program to start as guardian; empty: this one
    std::string lock = {};      ///< see ChildPrograms::Options::lock
  };
  using Info = Protocol<internal::ChildServerReady>;

  // Messages; use ChildProgram.
  struct Start {
    using Reply = unchecked<std::shared_ptr<internal::ChildBirth>>;
    ChildCommand command;
  };
  struct Signal {
    uint64_t id;
    int number;
  };
  /// Kills what `owner` has started, and answers when nothing of it is left.
  struct EndAllOf {
    using Reply = void;
    Pid owner;
  };

  explicit ChildServer(Args args);
  ChildServer(ChildServer&&) = delete;
  ~ChildServer();

  Async<Init> init();
  CallResult<Start::Reply> handle_call(Start start, From<Start::Reply> from);
  CallResult<void> handle_call(EndAllOf request, From<void> from);
  void handle_cast(Signal signal);
  CastResult handle_info(internal::ChildServerReady);
  void handle_info(Down down);
  void handle_info(ExitMessage) {}
  /// Kills what still runs, and waits until it is gone.
  Async<void> terminate(ExitReason reason);

 private:
  struct Waiting {
    Pid owner;
    From<void> from;
  };
  struct Child {
    From<Start::Reply> from;
    Reference monitor;
    std::shared_ptr<internal::ChildBirth> birth;  // until it has been answered
  };
  void handle_event(ChildEvent& event, bool& lost);
  Child forget(uint64_t id);
  bool kill_all_of(Pid owner);

  Args args_;
  std::unique_ptr<internal::Spawner> spawner_;
  std::unordered_map<uint64_t, Child> children_;
  std::vector<Waiting> waiting_;  // for the last program of an owner to end
  uint64_t next_id_ = 1;
};

/// What a program is given, and how much of what it writes is kept.
struct ChildOptions {
  std::string input = {};
  size_t output_bytes_max = 64 << 10;
  size_t error_bytes_max = 16 << 10;
};

struct ChildOutcome {
  ChildExit exit = {};
  Captured output = {};
  Captured error = {};
};

/// A program that runs on behalf of the calling process. Belongs to that process.
class ChildProgram {
 public:
  /// Starts a command. Errors: what the system says, e.g. ENOENT, EACCES, EMFILE, EAGAIN; EPIPE:
  /// there is no server, or it does not answer.
  static Async<std::variant<ChildProgram, SystemError>> start(Server<ChildServer> server,
                                                              ChildCommand command,
                                                              ChildOptions options = {});
  ChildProgram(ChildProgram&&) noexcept;
  ChildProgram& operator=(ChildProgram&&) noexcept;
  /// Kills what still runs.
  ~ChildProgram();

  /// Which OS process it is, to be written down.
  const ProcessIdentity& identity() const;
  /// Names it for signal_child().
  uint64_t id() const;
  /// Sends a signal to its whole process group; nothing if it has ended.
  void signal(int number);

  /// Writes input, reads output, and waits for the end. nullopt: `timeout` is over; it still runs
  /// and wait() may be called again. After an outcome it must not be.
  Async<std::optional<ChildOutcome>> wait(Timeout timeout = infinity);

  /// The same for a server, which goes on with its messages meanwhile: it hands on each of these
  /// two messages, and gets the outcome from one of them. Others' are left alone.
  ///
  ///     using Info = otp::Protocol<otp::io::ChildNews>;
  ///     void handle_info(otp::io::ChildNews news) { if (auto end = program_->take(news)) ...; }
  ///     void handle_info(otp::Down down) { if (auto end = program_->take(down)) ...; }
  std::optional<ChildOutcome> take(const ChildNews& news);
  std::optional<ChildOutcome> take(const Down& down);

 private:
  explicit ChildProgram(std::unique_ptr<internal::ChildPump> pump);
  std::unique_ptr<internal::ChildPump> pump_;
};

/// Sends a signal to a program from a process that is not its owner.
void signal_child(const Server<ChildServer>& server, uint64_t id, int number);

}  // namespace otp::io
