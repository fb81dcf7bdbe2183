#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/base/format_value.h"
#include "otp/base/report.h"
#include "otp/behaviour/sys_event.h"
#include "otp/runtime/fault.h"
#include "otp/runtime/runtime.h"

/// What every behaviour answers besides its own protocol: the system messages of
/// otp/behaviour/sys.h, and what its reports say. GenServer and gen_statem derive from SysProcess.
namespace otp::internal {

class SysProcess;

/// The acknowledgement of a start: who waits for it, and whom the new process descends from besides
/// its parent.
struct StartAck {
  uint64_t caller = 0;
  uint64_t reference = 0;
  bool linked = false;  // the starter is the parent, whose end ends the process
  std::array<uint64_t, 3> ancestors{};
};

/// Requests that every behaviour answers itself (stop, sys): run between two messages, or while it
/// is suspended. The first member of the payload of a LetterKind::system letter.
struct SystemRequest {
  void (*run)(SysProcess& process, Letter& letter);
};

/// Its address names the type State.
template <class State>
inline constexpr char state_type = 0;

/// sys::trace, log, statistics and install: made when the first of them is switched on.
struct SysDebug {
  struct Installed {
    std::string id;
    sys::EventFunction function;
  };
  bool counting = false;
  int64_t since = 0;
  uint64_t messages_in = 0;
  uint64_t messages_out = 0;
  bool tracing = false;
  size_t log_max = 0;            // 0: no log is kept
  std::vector<std::string> log;  // the oldest first
  std::vector<Installed> installed;

  bool idle() const { return !counting && !tracing && log_max == 0 && installed.empty(); }
};

/// A behaviour that speaks sys.
///
/// To derive: hand letters of LetterKind::system to handle_system(); call attend() with a
/// message before it is handled when attention(), and note_out() with each reply when debugged();
/// let an end of the coroutine that this class started (suspension) pass through the usual
/// on_coroutine_done().
///
/// A suspended process waits in a coroutine that takes system messages alone: so messages keep
/// their order in the mailbox, and one that is not suspended pays nothing.
class SysProcess : public Process {
 public:
  // -- What sys and the reports ask of a behaviour. In the process, inside the library;
  // print_state, state_of and stop_with bracket what user code they call.

  /// Of its reports: `otp.gen_server`, `otp.gen_statem`. Lives as long as the program.
  virtual std::string_view domain() const = 0;
  std::string_view behaviour() const { return domain().substr(4); }
  /// Prints the data as format_status or reflection has it, or why_no_state(). May throw.
  virtual void print_state(BoundedWriter& out) = 0;
  /// Empty when there is data to print.
  virtual std::string why_no_state() const = 0;
  /// The plain State whose state_type is `type`; null: it has none of that type.
  virtual void* state_of(const void* type) = 0;
  /// Ends the process as if a callback had said stop(reason).
  virtual void stop_with(ExitReason reason) = 0;
  /// It was told to end, and does so when what runs now has returned.
  virtual bool stopping() const = 0;

  /// The parent whose end ends this process; 0: none.
  virtual uint64_t linked_parent() const = 0;

  bool suspended() const { return suspended_; }
  bool debugged() const { return (attention_ & kDebugged) != 0; }
  bool hibernating() const { return (attention_ & kHibernating) != 0; }
  SysDebug& debug();
  /// Drops what debug() made when nothing of it is in use.
  void settle_debug();
  SysDebug* debug_if_any() { return debug_.get(); }

  void suspend_now();
  void resume_now() { suspended_ = false; }
  sys::Status status();

  /// Answers the system request `letter` and consumes it.
  void reply_system(Letter& letter, Letter* answer);
  void refuse_system(Letter& letter, ExitReason reason);

  /// What print_state gives, cut to `bytes_max`; a failure is mentioned in it.
  std::string state_text(size_t bytes_max);

 protected:
  void handle_system(Letter* letter) { letter->as<SystemRequest>().run(*this, *letter); }
  /// Logs what this process was doing when it failed, and then its crash; nothing when `reason` is
  /// an orderly end. `last` is the message being handled, whose content the callback was given, or
  /// null; `thrown` what left the callback, or null.
  void report_end(const ExitReason& reason, Letter* last, const std::exception_ptr& thrown);
  /// Whether attend() wants to see the next message before it is handled.
  bool attention() const { return attention_ != 0; }
  void attend(Letter& letter);
  void set_hibernating(bool on) { set(kHibernating, on); }
  void note_out(Letter& answer, uint64_t caller);

 private:
  static Async<void> suspend_loop(SysProcess& self, int64_t idle_deadline);
  void note(const sys::Event& event);
  void set(uint8_t flag, bool on) {
    attention_ = static_cast<uint8_t>(on ? attention_ | flag : attention_ & ~flag);
  }

  static constexpr uint8_t kDebugged = 1;
  static constexpr uint8_t kHibernating = 2;

  std::unique_ptr<SysDebug> debug_;  // null: nothing is switched on
  bool suspended_ = false;
  uint8_t attention_ = 0;
};

}  // namespace otp::internal
