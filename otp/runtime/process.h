#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/async/async.h"
#include "otp/base/exit_reason.h"
#include "otp/base/id_map.h"
#include "otp/base/mailbox_limit.h"
#include "otp/base/pid.h"
#include "otp/runtime/letter.h"
#include "otp/runtime/slot.h"
#include "otp/runtime/timer_wheel.h"

namespace otp::internal {

struct Env;
class SystemImpl;

/// An operation outside the process (a socket, a child program) that uses memory of the process's
/// frames. While one is pending, a killed process stays until the operation has answered: two-phase
/// kill.
///
/// The operation's completion must reach the process as a `wake` letter whose reference is
/// `reference`. Threads: the process, but for complete_operation() which anybody may call once.
struct PendingOperation {
  PendingOperation* previous = nullptr;
  PendingOperation* next = nullptr;
  uint64_t reference = 0;
  // Set when the wake letter has been drained; then it is no longer among the process's operations.
  bool done = false;

  /// Asks the operation to end soon. Called in the process, once when the time of its wait is over
  /// and once when the process was killed.
  virtual void cancel() noexcept = 0;

 protected:
  ~PendingOperation() = default;
};

/// Looks for a message that a receive accepts.
class Receiver {
 public:
  /// Runs as library code; a user's predicate in it runs as user code, and may throw.
  virtual bool accepts(Letter& letter) = 0;
  /// accepts() threw while the process waited: the wait is over.
  virtual void fail(std::exception_ptr thrown) noexcept = 0;

 protected:
  ~Receiver() = default;
};

/// Takes what a monitored process leaves, its result or its DOWN, as soon as that is drained: past
/// the queue, so that nothing of it ever lies in the mailbox. Given to adopt(); it must outlive the
/// monitor. `take` gets the letter, to consume() now or later.
class ResultSink {
 public:
  virtual void take(Letter* letter) noexcept = 0;

 protected:
  ~ResultSink() = default;
};

/// What a process waits for with Wait::condition: asked at every slice, inside the library.
class Condition {
 public:
  virtual bool holds() = 0;

 protected:
  ~Condition() = default;
};

/// How a child that was just born is tied to its parent.
struct ChildTies {
  bool linked = false;
  bool quiet = false;  // the link makes no EXIT message: the monitor's sink tells
  uint64_t monitor = 0;
  ResultSink* sink = nullptr;  // null: DOWN and result become messages
};

/// The processes that a process descends from, its parent first; 0: no more are known.
using Ancestors = std::array<uint64_t, 4>;

/// The body of a process: its queue, signals, links, monitors and what it waits for. The behaviours
/// (plain coroutine, GenServer, …) derive from it.
///
/// Invariants
///  (P1) Everything here is touched only by the holder of the slot's run right (S1).
///  (P2) queue_ holds messages in the order in which they were drained, ending at queue_last_ by
///       identity; the last one may be the slot's anchor, whose `next` still belongs to senders.
///  (P3) Links, monitors and watchers change only by this process's own actions and by signals it
///  drains. (P4) Once exiting_ is set no user callback runs again; only destructors of its frames
///  and its state.
class Process {
 public:
  enum class RunEnd : uint8_t { idle, more, ended };
  enum class Wait : uint8_t { none, yield, reply, receive, sleep, operation, message, condition };

  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process();
  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* body, size_t bytes) noexcept { pool_free(body, bytes); }

  // -- What a behaviour implements. Each runs in the process, inside the library; the behaviour
  // brackets its calls of user code with UserScope.

  /// The first thing that runs.
  virtual void on_start() = 0;
  /// The next message, in order, while no coroutine is active. Takes the letter: consume() it.
  virtual void on_message(Letter* letter) = 0;
  /// The coroutine given to start_coroutine has ended.
  virtual void on_coroutine_done() = 0;
  /// The time given to wait_for_message passed and no message came.
  virtual void on_idle_timeout() {}
  /// Work that comes before the next message and before an idle timeout; asked for only while
  /// set_may_have_urgent_work is on.
  virtual bool has_urgent_work() const { return false; }
  virtual void on_urgent_work() {}
  /// The process ends: destroy the user's state (frames are gone by now). Nothing else may run.
  virtual void on_exit() noexcept {}
  /// Answers whoever waits for this process in a way that only the behaviour knows.
  virtual void answer_waiting() noexcept {}
  /// For reports: what this process is, e.g. the server type's name.
  virtual std::string_view label() const { return "process"; }
  virtual const void* server_type() const { return nullptr; }
  virtual Ancestors ancestors() const { return {parent_}; }

  // -- For behaviours and awaiters, in the process.

  Pid pid() const { return Pid{0, id_}; }
  uint64_t id() const { return id_; }
  uint64_t parent() const { return parent_; }
  /// What the process belongs to: its spawner's unless it takes another; 0 = nothing. Children that
  /// are spawned later inherit it. For otp/application. OTP: the group leader.
  uint32_t group() const { return group_; }
  void set_group(uint32_t group) { group_ = group; }
  SystemImpl& system() const { return *system_; }
  bool trap_exit() const { return trap_exit_; }
  void set_trap_exit(bool on) { trap_exit_ = on; }
  bool exiting() const { return exiting_; }
  const ExitReason& exit_reason() const { return exit_reason_; }
  Driver& driver() { return driver_; }
  const Driver& driver() const { return driver_; }
  Wait waits_for() const { return wait_; }
  size_t pending_operations() const;

  /// Before the process is spawned: how many messages may wait in its mailbox.
  void limit_mailbox(const MailboxLimit& limit);
  const MailboxLimit* mailbox_limit() const {
    return limits_ == nullptr ? nullptr : &limits_->limit;
  }
  /// Messages dropped because the mailbox was full.
  uint64_t dropped_messages() const { return limits_ == nullptr ? 0 : limits_->dropped; }

  /// For servers: calls whose caller has given up are dropped, not handled.
  bool drop_expired() const { return drop_expired_; }
  void set_drop_expired(bool on) { drop_expired_ = on; }

  void set_may_have_urgent_work(bool on) { may_have_urgent_work_ = on; }

  /// Ends the process with `reason` as soon as control is back in the library. The first reason
  /// counts.
  void exit_with(ExitReason reason);
  void start_coroutine(Async<void> root);
  /// What left the root coroutine: null if it returned.
  std::exception_ptr take_coroutine_exception();

  uint64_t new_reference();
  void consume(Letter* letter) {
    // The anchor's `next` still belongs to senders: it is freed when it is passed (S3).
    if (letter == slot_->anchor) [[likely]] {
      destroy_letter_payload(letter);
      letter->flags |= kConsumed;
    } else {
      free_letter(letter);
    }
  }
  /// The oldest message, removed from the queue; null: none.
  Letter* pop_message() {
    Letter* letter = queue_first_;
    if (letter != nullptr) unlink_message(nullptr, letter);
    return letter;
  }
  Letter* queue_first() const { return queue_first_; }
  /// The message behind `letter`, which is in the queue; null: it is the last.
  const Letter* queue_next(const Letter* letter) const {
    return letter == queue_last_ ? nullptr : letter->next.load(relaxed);  // (P2)
  }
  uint32_t queue_length() const { return queue_length_; }

  // Waiting. begin_wait is called by an awaiter that suspends; the wait ends by itself.
  void begin_wait(Wait what, int64_t deadline) {
    wait_ = what;
    timed_out_ = false;
    deadline_ = deadline;
    if (timer_due_ > deadline) [[unlikely]]
      arm_wait(deadline);
  }
  bool timed_out() const { return timed_out_; }
  /// Call before begin_wait(Wait::reply): replies to this reference end the wait.
  void expect_reply(uint64_t reference, uint64_t target) {
    wait_reference_ = reference;
    wait_target_ = target;
    reply_ = nullptr;
  }
  Letter* take_reply() { return std::exchange(reply_, nullptr); }
  /// The wait is over. Its timer stays armed: the next wait extends it lazily instead of arming
  /// another one. In a simulation it goes, as virtual time would run to it for nothing.
  void abandon_wait() noexcept {
    wait_ = Wait::none;
    timed_out_ = false;
    deadline_ = TimerWheel::kNever;
    wait_reference_ = 0;
    wait_target_ = 0;
    if (drops_timers_ && timer_ != 0) [[unlikely]]
      drop_timer();
  }
  /// A receive begins: whatever an earlier one passed over is to be looked at.
  void begin_scan() { scanned_ = nullptr; }
  /// The oldest message that `receiver` accepts among those that this receive has not looked at,
  /// removed from the queue; null: none.
  Letter* scan(Receiver& receiver);
  /// The oldest message that `accepts` (bool of a Letter&) holds for, removed; null: none.
  template <class Accepts>
  Letter* take_matching(Accepts accepts) {
    Letter* previous = nullptr;
    for (Letter* letter = queue_first_; letter != nullptr;) {
      if (accepts(*letter)) {
        unlink_message(previous, letter);
        return letter;
      }
      previous = letter;
      letter = letter == queue_last_ ? nullptr : letter->next.load(relaxed);
    }
    return nullptr;
  }
  void set_receiver(Receiver* receiver) { receiver_ = receiver; }
  /// Call before begin_wait(Wait::condition).
  void set_condition(Condition* condition) { condition_ = condition; }
  Letter* take_received() { return std::exchange(received_, nullptr); }
  /// Looks at everything that has arrived. False when a signal ended the process.
  bool drain_now();
  /// on_idle_timeout() is called if no message is handled until `deadline`.
  void wait_for_message(int64_t deadline) { begin_wait(Wait::message, deadline); }
  /// When on_idle_timeout() is due; kNever: no message is waited for.
  int64_t idle_deadline() const { return wait_ == Wait::message ? deadline_ : TimerWheel::kNever; }
  Wait waiting_for() const { return wait_; }
  /// Counts work against the slice; false: the slice is used up, suspend.
  bool charge(int cost) { return (budget_ -= cost) > 0; }
  /// Ends the slice before its budget is used up.
  void end_slice() {
    if (budget_ <= 0) return;
    unspent_ = budget_;
    budget_ = 0;
  }

  void add_operation(PendingOperation& operation);
  void remove_operation(PendingOperation& operation);

  // Signals, sent by this process.
  void link(Pid other);
  void unlink(Pid other);
  uint64_t monitor(Pid target, uint8_t flags = 0);
  /// Watches whoever has `name` now; the name is kept for the DOWN.
  uint64_t monitor_name(std::string_view name);
  /// The name by which that monitor was made, until its DOWN is taken.
  std::string_view monitored_name(uint64_t reference) const;
  std::string take_monitored_name(uint64_t reference);
  /// True if the monitor was active.
  bool demonitor(uint64_t reference);
  void send_demonitor(uint64_t target, uint64_t reference);
  /// Removes queued DOWN messages of `reference`, or EXIT messages of `from`.
  void flush_down(uint64_t reference);
  void flush_exit(uint64_t from);

  void adopt(uint64_t child, const ChildTies& ties);
  /// Drops this end of a link whose other end is gone or is about to be.
  void forget_link(uint64_t other) {
    if (other == parent_) parent_linked_ = false;
    if (relations_ != nullptr) relations_->links.erase(other);
  }

  // A reply that is owed although the callback has ended: the caller gets our reason if we end
  // first.
  void watch(uint64_t reference, uint64_t watcher, uint8_t flags = 0);
  bool unwatch(uint64_t reference);

  // Aliases, by reference. What they let through becomes a message.
  enum AliasFlags : uint8_t {
    kOneMessage = 1,   // the first message ends it
    kWithMonitor = 2,  // it ends with the monitor of the same reference; with kOneMessage the
                       // message ends both
    kForResponse = 4,  // it takes the reply to a request instead of messages
  };
  void add_alias(uint64_t reference, uint8_t flags) {
    relations().aliases.insert(reference).first->flags = flags;
  }
  bool remove_alias(uint64_t reference) {
    return relations_ != nullptr && relations_->aliases.erase(reference);
  }
  /// The DOWN of `reference` will carry `tag`.
  void tag_monitor(uint64_t reference, Term tag);
  /// Calls fn(pid id) for each process that this one is linked to.
  template <class F>
  void for_each_link(F fn) {
    if (parent_linked_) fn(parent_);
    if (relations_ == nullptr) return;
    relations_->links.for_each([&](uint64_t peer, Relations::Link& link) {
      if (link.active()) fn(peer);
    });
  }

  struct Relations {
    struct Link {
      static constexpr uint64_t kQuiet = 1;  // active, makes no EXIT message; no reference is 1
      uint64_t unlinking;  // 0, kQuiet = active, else the id of the unlink that waits for its
                           // acknowledgement
      bool active() const { return unlinking <= kQuiet; }
    };
    struct Monitor {
      uint64_t target;
      ResultSink* sink;
    };
    struct Watcher {
      uint64_t watcher;
      uint8_t flags;
    };
    struct Alias {
      uint8_t flags;
    };
    IdMap<Link> links;        // by pid id
    IdMap<Monitor> monitors;  // by reference: whom we monitor
    IdMap<Watcher> watchers;  // by reference: who gets a DOWN when we end
    IdMap<Alias> aliases;
    std::unique_ptr<std::map<uint64_t, Term>> tags;       // of monitors; null: none ever had one
    std::vector<std::pair<uint64_t, std::string>> names;  // of monitors by name, until they end
    static void* operator new(size_t bytes) { return pool_allocate(bytes); }
    static void operator delete(void* p, size_t bytes) noexcept { pool_free(p, bytes); }
  };
  Relations* relations_if_any() { return relations_.get(); }

  struct Limits {
    MailboxLimit limit;
    uint64_t dropped = 0;
  };

 private:
  friend class SystemImpl;
  Relations& relations() {
    if (!relations_) relations_ = std::make_unique<Relations>();
    return *relations_;
  }

  RunEnd run(Env& env);
  RunEnd exit_step(Env& env);
  void drain(Slot& slot);
  void take_letter(Slot& slot, Letter* letter);
  void refuse(Letter* letter);
  void take_signal(Slot& slot, Letter* letter);
  void take_exit(Letter* letter);
  void take_link_exit(Letter* letter);
  void take_down(Letter* letter);
  void take_reply_letter(Letter* letter);
  void take_aliased(Letter* letter);
  void take_info(Letter* letter);
  void end_monitor_alias(uint64_t reference);
  Letter* with_tag(Letter* down);
  void take_result(Letter* letter);
  void take_timer(Letter* letter);
  void take_wake(Letter* letter);
  void append(Letter* letter) {
    if (queue_first_ == nullptr) {
      queue_first_ = letter;
    } else {
      queue_last_->next.store(letter, relaxed);  // queue_last_ was passed: its next is ours (P2)
    }
    queue_last_ = letter;
    ++queue_length_;
  }
  void unlink_message(Letter* previous, Letter* letter) {
    // acquire is not needed: everything up to queue_last_ was drained by this holder (P2).
    Letter* next = letter == queue_last_ ? nullptr : letter->next.load(relaxed);
    if (previous == nullptr) {
      queue_first_ = next;
    } else if (next != nullptr) {
      previous->next.store(next, relaxed);
    }
    if (letter == queue_last_) queue_last_ = previous;
    if (scanned_ == letter) scanned_ = previous;
    --queue_length_;
  }
  bool wait_over();
  bool receive_over();
  bool cancel_waited();
  /// Whether only a letter can end the wait: what had come before it began has been looked at.
  bool waits_for_letter() const { return wait_ == Wait::reply || wait_ == Wait::receive; }
  void arm_wait(int64_t deadline);
  void drop_timer() noexcept;
  void announce_exit();
  void announce_link_exit(uint64_t peer);
  void announce_to_relations();
  void answer_letter(Letter* letter, const ExitReason& reason);

  SystemImpl* system_ = nullptr;
  Slot* slot_ = nullptr;
  uint64_t id_ = 0;
  uint64_t parent_ = 0;
  Letter* queue_first_ = nullptr;
  Letter* queue_last_ = nullptr;
  Letter* scanned_ = nullptr;  // the receive under way does not want anything up to here
  Receiver* receiver_ = nullptr;
  Condition* condition_ = nullptr;
  Letter* received_ = nullptr;
  Driver driver_;
  Async<void> root_;
  uint64_t wait_reference_ = 0;
  uint64_t wait_target_ = 0;
  Letter* reply_ = nullptr;
  int64_t deadline_ = TimerWheel::kNever;
  int64_t timer_due_ = TimerWheel::kNever;  // of the armed wait timer
  TimerId timer_ = 0;
  std::unique_ptr<Relations> relations_;
  std::unique_ptr<Limits> limits_;  // null: the mailbox has no limit
  PendingOperation* operations_ = nullptr;
  ExitReason exit_reason_;
  uint32_t group_ = 0;
  uint32_t queue_length_ = 0;
  int32_t budget_ = 0;
  int32_t unspent_ = 0;  // of the slice's budget, when it was ended early
  uint16_t timer_core_ = 0;
  Wait wait_ = Wait::none;
  bool timed_out_ = false;
  bool trap_exit_ = false;
  // An active link to parent_ is kept here and not in relations_ (never in both): it is the one
  // link that most processes have.
  bool parent_linked_ = false;
  bool exiting_ = false;
  bool drop_expired_ = false;
  bool may_have_urgent_work_ = true;
  bool drops_timers_ = false;  // simulated: a wait's timer goes with the wait
  bool cancelled_ = false;     // the pending operations were asked to end
};

}  // namespace otp::internal
