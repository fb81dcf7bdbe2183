#include "otp/runtime/process_info.h"

#include "otp/base/report.h"
#include "otp/runtime/runtime.h"

namespace otp {

using namespace internal;

namespace {

constexpr size_t kMessageBytesMax = 512;

struct InfoRequest {
  size_t messages_max;
};

std::string_view wait_text(Process::Wait wait) {
  switch (wait) {
    case Process::Wait::none: return "";
    case Process::Wait::yield: return "yield";
    case Process::Wait::reply: return "reply";
    case Process::Wait::receive: return "receive";
    case Process::Wait::sleep: return "sleep";
    case Process::Wait::operation: return "operation";
    case Process::Wait::message: return "message";
    case Process::Wait::condition: return "condition";
  }
  return "";
}

ProcessStatus status_of(const Process& process, Driver& driver) {
  if (process.exiting()) return ProcessStatus::exiting;
  const Process::Wait wait = process.waiting_for();
  if (driver.active()) {
    const bool goes_on = wait == Process::Wait::none || wait == Process::Wait::yield;
    return goes_on ? ProcessStatus::runnable : ProcessStatus::waiting;
  }
  return process.queue_first() == nullptr ? ProcessStatus::waiting : ProcessStatus::runnable;
}

void add_messages(Process& process, size_t messages_max, ProcessInfo* info) {
  const Letter* letter = process.queue_first();
  for (; letter != nullptr && info->messages.size() < messages_max;
       letter = process.queue_next(letter)) {
    BoundedWriter out(kMessageBytesMax + kMessageBytesMax);
    UserScope user(env());  // a message may format itself
    write_guarded(out, kMessageBytesMax,
                  [&](BoundedWriter& part) { format_letter(part, *letter); });
    info->messages.push_back(out.take());
  }
}

void add_relations(Process& process, ProcessInfo* info) {
  process.for_each_link([&](uint64_t peer) { info->links.push_back(Pid{0, peer}); });
  Process::Relations* relations = process.relations_if_any();
  if (relations == nullptr) return;
  relations->monitors.for_each([&](uint64_t, Process::Relations::Monitor& monitor) {
    info->monitors.push_back(Pid{0, monitor.target});
  });
  relations->watchers.for_each([&](uint64_t, Process::Relations::Watcher& watcher) {
    // Those that wait for an answer are watchers too, but no monitors.
    if (!(watcher.flags & kFailed)) info->monitored_by.push_back(Pid{0, watcher.watcher});
  });
}

ProcessInfo info_of(Process& process, size_t messages_max) {
  ProcessInfo info;
  info.pid = process.pid();
  info.registered_name = process.system().names().name_of(process.id());
  info.initial_call = process.label();
  info.status = status_of(process, process.driver());
  info.waiting_for = wait_text(process.waiting_for());
  info.await_stack = await_stack_of(process.driver().top());
  info.message_queue_len = process.queue_length();
  add_messages(process, messages_max, &info);
  add_relations(process, &info);
  for (uint64_t each : process.ancestors()) {
    if (each != 0) info.ancestors.push_back(Pid{0, each});
  }
  info.trap_exit = process.trap_exit();
  info.dropped_messages = process.dropped_messages();
  return info;
}

// Waits for the answer like a call.
class InfoAwaiter {
 public:
  InfoAwaiter(Pid target, ProcessInfoOptions options) : target_(target), options_(options) {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise>) {
    LibraryScope scope(env());
    Process& process = self_process();
    Letter* letter = make_letter<InfoRequest>(LetterKind::info, plain_operation<InfoRequest>,
                                              InfoRequest{options_.messages_max});
    letter->sender = process.id();
    letter->reference = process.new_reference();
    process.expect_reply(letter->reference, 0);
    process.begin_wait(Process::Wait::reply, process.system().deadline_after(options_.timeout));
    process.system().deliver(target_.id, letter);
  }
  std::optional<ProcessInfo> await_resume() {
    LibraryScope scope(env());
    Process& process = self_process();
    Letter* reply = process.take_reply();
    process.abandon_wait();
    if (reply == nullptr) throw Exit(ExitReason::timeout());
    std::optional<ProcessInfo> info;
    if (!(reply->flags & kFailed)) info.emplace(std::move(reply->as<ProcessInfo>()));
    process.consume(reply);
    return info;
  }

 private:
  const Pid target_;
  const ProcessInfoOptions options_;
};

}  // namespace

namespace internal {

void Process::take_info(Letter* letter) {
  Letter* answer = make_letter<ProcessInfo>(LetterKind::reply, plain_operation<ProcessInfo>,
                                            info_of(*this, letter->as<InfoRequest>().messages_max));
  answer->sender = id_;
  answer->reference = letter->reference;
  system_->deliver(letter->sender, answer);
}

}  // namespace internal

Async<std::optional<ProcessInfo>> process_info(Pid pid, ProcessInfoOptions options) {
  if (pid == self()) {
    LibraryScope scope(env());
    Process& process = self_process();
    process.drain_now();
    ProcessInfo info = info_of(process, options.messages_max);
    info.status = ProcessStatus::running;
    info.waiting_for.clear();
    co_return info;
  }
  co_return co_await InfoAwaiter(pid, options);
}

}  // namespace otp
