#include "otp/io/child_server.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "otp/io/internal/child_news.h"
#include "otp/io/internal/child_pump.h"
#include "otp/io/internal/process_operation.h"
#include "otp/io/internal/spawner.h"
#include "otp/task/blocking.h"

namespace otp::io {

using internal::ChildBirth;
using internal::ChildPump;

namespace {

constexpr auto kStartPatience = std::chrono::seconds(30);

struct NewsOf {
  uint64_t id;
  Reference monitor;
  bool operator()(const ChildNews& news) const { return news.id == id; }
  bool operator()(const Down& down) const { return down.reference == monitor; }
};
using NewsWithin = otp::internal::ReceiveWithin<NewsOf, ChildNews, Down>;

}  // namespace

// ---- The server

ChildServer::ChildServer(Args args) : args_(std::move(args)) {}
ChildServer::~ChildServer() = default;

Async<Init> ChildServer::init() {
  trap_exit(true);
  std::unique_ptr<internal::Spawner> spawner = internal::make_spawner();
  ChildPrograms::Options options{.program = args_.guardian, .lock = args_.lock};
  auto launched = co_await otp::blocking(internal::launch, std::move(spawner), std::move(options));
  if ((*launched)->error) {
    co_return otp::stop(ExitReason::tagged("guardian", Term((*launched)->error->to_string())));
  }
  spawner_ = std::move((*launched)->spawner);
  spawner_->begin();
  co_return otp::ok();
}

CallResult<ChildServer::Start::Reply> ChildServer::handle_call(Start start,
                                                               From<Start::Reply> from) {
  const uint64_t id = next_id_++;
  auto birth = std::make_shared<ChildBirth>();
  birth->id = id;
  auto started = spawner_->start(id, start.command);
  if (auto* error = std::get_if<SystemError>(&started)) {
    birth->failed = std::move(*error);
    return otp::reply(Start::Reply{std::move(birth)});
  }
  auto& made = std::get<internal::Spawner::Started>(started);
  birth->streams = std::move(made.streams);
  birth->scripted = std::move(made.scripted);
  children_[id] = {from, otp::monitor(from.caller), std::move(birth)};
  return otp::noreply();
}

void ChildServer::handle_cast(Signal signal) {
  if (children_.contains(signal.id)) spawner_->signal(signal.id, signal.number);
}

void ChildServer::handle_info(Down down) { kill_all_of(down.pid); }

bool ChildServer::kill_all_of(Pid owner) {
  bool any = false;
  for (const auto& [id, child] : children_) {
    if (child.from.caller != owner) continue;
    any = true;
    spawner_->signal(id, SIGKILL);
  }
  return any;
}

CallResult<void> ChildServer::handle_call(EndAllOf request, From<void> from) {
  if (!kill_all_of(request.owner)) return otp::reply();
  waiting_.push_back({request.owner, from});
  return otp::noreply();
}

ChildServer::Child ChildServer::forget(uint64_t id) {
  const auto found = children_.find(id);
  Child child = std::move(found->second);
  children_.erase(found);
  otp::demonitor(child.monitor, true);
  const Pid owner = child.from.caller;
  const auto owns = [&](const auto& entry) { return entry.second.from.caller == owner; };
  const auto waits = [&](const Waiting& waiting) { return waiting.owner == owner; };
  if (std::ranges::any_of(waiting_, waits) && std::ranges::none_of(children_, owns)) {
    for (const Waiting& each : waiting_) {
      if (waits(each)) otp::reply(each.from);
    }
    std::erase_if(waiting_, waits);
  }
  return child;
}

CastResult ChildServer::handle_info(internal::ChildServerReady) {
  bool lost = false;
  for (ChildEvent& event : spawner_->on_ready()) handle_event(event, lost);
  if (!lost) return otp::noreply();
  return otp::stop(ExitReason::tagged("guardian", Term::literal("lost")));
}

void ChildServer::handle_event(ChildEvent& event, bool& lost) {
  if (std::holds_alternative<GuardianLost>(event)) {
    lost = true;
  } else if (auto* started = std::get_if<ChildStarted>(&event)) {
    const auto found = children_.find(started->id);
    if (found == children_.end()) return;
    Child& child = found->second;
    child.birth->process = std::move(started->process);
    otp::reply(child.from, Start::Reply{std::move(child.birth)});
  } else if (auto* failed = std::get_if<ChildFailed>(&event)) {
    if (!children_.contains(failed->id)) return;
    Child child = forget(failed->id);
    child.birth->failed = std::move(failed->error);
    child.birth->streams = {};
    otp::reply(child.from, Start::Reply{std::move(child.birth)});
  } else if (auto* ended = std::get_if<ChildEnded>(&event)) {
    if (!children_.contains(ended->id)) return;
    const Child child = forget(ended->id);
    (void)otp::send(child.from.caller, ChildNews{.id = ended->id, .exit = ended->exit});
  }
}

Async<void> ChildServer::terminate(ExitReason) {
  if (spawner_ == nullptr) co_return;
  co_await otp::blocking(internal::shut_down, std::move(spawner_));
}

// ---- Programs

Async<std::variant<ChildProgram, SystemError>> ChildProgram::start(Server<ChildServer> server,
                                                                   ChildCommand command,
                                                                   ChildOptions options) {
  const std::string what =
      "start " + (command.argv.empty() ? std::string("a command") : command.argv[0]);
  ChildServer::Start request{std::move(command)};
  auto answered = co_await try_call(server, std::move(request), {.timeout = kStartPatience});
  if (!answered.ok()) co_return SystemError{EPIPE, what + ": " + answered.error().to_string()};
  std::shared_ptr<ChildBirth> birth = std::move(answered.value().value);
  if (birth->failed) co_return SystemError{birth->failed->code, what};
  co_return ChildProgram(
      std::make_unique<ChildPump>(std::move(server), std::move(birth), std::move(options)));
}

ChildProgram::ChildProgram(std::unique_ptr<ChildPump> pump) : pump_(std::move(pump)) {}
ChildProgram::ChildProgram(ChildProgram&&) noexcept = default;
ChildProgram& ChildProgram::operator=(ChildProgram&&) noexcept = default;
ChildProgram::~ChildProgram() = default;

const ProcessIdentity& ChildProgram::identity() const { return pump_->birth().process; }
uint64_t ChildProgram::id() const { return pump_->birth().id; }
void ChildProgram::signal(int number) { signal_child(pump_->server(), id(), number); }

void signal_child(const Server<ChildServer>& server, uint64_t id, int number) {
  otp::cast(server, ChildServer::Signal{id, number});
}

Async<std::optional<ChildOutcome>> ChildProgram::wait(Timeout timeout) {
  otp::internal::SystemImpl& system = otp::internal::self_process().system();
  const int64_t deadline = system.deadline_after(timeout);
  for (;;) {
    const bool limited = !timeout.is_infinite();
    const Timeout left = limited ? Timeout(Duration(deadline - system.now())) : infinity;
    NewsWithin next{{left, NewsOf{id(), pump_->monitor()}}};
    auto news = co_await next;
    if (!news) co_return std::nullopt;
    auto outcome = std::visit([this](const auto& message) { return take(message); }, *news);
    if (outcome) co_return outcome;
  }
}

std::optional<ChildOutcome> ChildProgram::take(const ChildNews& news) {
  if (news.id != id() || !pump_->take(news)) return std::nullopt;
  return pump_->outcome();
}

std::optional<ChildOutcome> ChildProgram::take(const Down& down) {
  if (down.reference != pump_->monitor()) return std::nullopt;
  pump_->lose();
  return pump_->outcome();
}

}  // namespace otp::io
