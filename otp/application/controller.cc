#include "otp/application/controller.h"

#include <algorithm>
#include <utility>

#include "otp/base/check.h"
#include "otp/supervision/supervisor.h"

namespace otp::internal {

namespace {

ApplicationTable& attached_table() {
  ApplicationTable* table = application_table();
  OTP_CHECK(table != nullptr, "no applications: application::attach() comes first");
  return *table;
}

Result<void> tagged(const char* tag, const std::string& name) {
  return ExitReason::tagged(tag, Term::atom(name));
}

}  // namespace

ApplicationController::ApplicationController(Args args)
    : args_(std::move(args)), table_(attached_table()) {
  trap_exit(true);
}

CallResult<Result<void>> ApplicationController::handle_call(StartApplication request,
                                                            From<Result<void>> from) {
  if (auto answer = begin(std::move(request), from)) return reply(*std::move(answer));
  return noreply();
}

CallResult<Result<void>> ApplicationController::handle_call(StopApplication request,
                                                            From<Result<void>> from) {
  Entry* entry = find(request.name);
  if (entry == nullptr || entry->state != State::running) {
    return reply(tagged("not_started", request.name));
  }
  entry->waiting.push_back(from);
  stop_entry(*entry);
  return noreply();
}

// One that is still starting is told, too: it stops when its start has ended.
Async<void> ApplicationController::handle_call(StopAll) {
  while (!entries_.empty()) {
    Entry& last = entries_.back();
    const Pid master = last.master;
    const Timeout limit = last.application->shutdown;
    last.start_again.clear();  // nothing starts any more
    if (last.state != State::stopping) stop_entry(last);
    auto ours = [master](const ExitMessage& message) { return message.from == master; };
    auto end = co_await receive<ExitMessage>(ours, after(limit));
    if (!end) {
      report(find(entries_.back().application->name)->application->name +
             " does not stop in time and is killed");
      otp::exit(master, ExitReason::kill());
      end = co_await receive<ExitMessage>(ours);
    }
    gone(master, std::move(end->reason));
  }
}

void ApplicationController::handle_cast(MasterNews news) {
  Entry* entry = find(news.name);
  if (entry == nullptr || entry->master != news.master) return;
  switch (news.what) {
    case MasterNews::What::started: return started(*entry, news);
    case MasterNews::What::failed: entry->failure = std::move(news.reason); return;
    case MasterNews::What::ended: return ended(*entry, news.reason);
  }
}

void ApplicationController::handle_info(ExitMessage message) {
  gone(message.from, std::move(message.reason));
}

ApplicationController::Entry* ApplicationController::find(std::string_view name) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [name](const Entry& one) { return one.application->name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

// The answer, or nothing: it comes when the start has ended.
std::optional<Result<void>> ApplicationController::begin(StartApplication request,
                                                         const From<Result<void>>& from) {
  const Application* application = table_.find(request.name);
  if (application == nullptr) return tagged("unknown_application", request.name);
  if (Entry* entry = find(request.name)) {
    if (entry->state == State::running) return tagged("already_started", request.name);
    if (entry->state == State::starting) {
      entry->waiting.push_back(from);
    } else {
      entry->start_again.push_back({std::move(request), from});
    }
    return std::nullopt;
  }
  (void)table_.load(request.name);  // unless it is loaded
  if (auto wrong = missing(*application)) return *wrong;
  Entry entry{application, request.type, {}};
  entry.waiting.push_back(from);
  entry.master = spawn_link(application_master, application, table_.group_of(request.name), self());
  entries_.push_back(std::move(entry));
  return std::nullopt;
}

std::optional<ExitReason> ApplicationController::missing(const Application& application) const {
  for (const std::string& needed : application.applications) {
    if (!table_.is_running(needed)) {
      return ExitReason::tagged("not_started", Term::atom(needed));
    }
  }
  return std::nullopt;
}

void ApplicationController::started(Entry& entry, const MasterNews& news) {
  const Application& application = *entry.application;
  table_.started({application.name, application.version, news.supervisor});
  std::vector<From<Result<void>>> waiting = std::move(entry.waiting);
  entry.waiting.clear();
  if (entry.state == State::starting) entry.state = State::running;
  // Those that start at the same time count in the order in which they were done.
  auto at = entries_.begin() + (&entry - entries_.data());
  std::rotate(at, at + 1, entries_.end());
  for (const auto& from : waiting) reply(from, Result<void>());
}

// By itself: the top supervisor gave up, or had nothing left to do.
void ApplicationController::ended(const Entry& entry, const ExitReason& reason) {
  const bool fails = entry.type == ApplicationType::permanent ||
                     (entry.type == ApplicationType::transient && reason.is_abnormal());
  if (entry.state == State::stopping) return;
  if (fails || reason.is_abnormal()) {
    report(entry.application->name + " ended: " + reason.to_string());
  }
  if (!args_.owner) return;
  const bool last = entries_.size() == 1;
  if (fails) (void)otp::send(args_.owner, ProgramNews{ProgramNews::What::failed});
  if (!fails && last) (void)otp::send(args_.owner, ProgramNews{ProgramNews::What::all_ended});
}

void ApplicationController::stop_entry(Entry& entry) {
  entry.state = State::stopping;
  report("stopping " + entry.application->name);
  (void)otp::send(entry.master, StopMaster{});
}

// A master has ended, and with it everything of its application.
void ApplicationController::gone(Pid master, ExitReason reason) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [master](const Entry& one) { return one.master == master; });
  if (found == entries_.end()) return;
  Entry entry = std::move(*found);
  entries_.erase(found);
  const std::string& name = entry.application->name;
  const bool ran = table_.is_running(name);
  table_.ended(name);
  if (entry.state == State::stopping) report("stopped " + name);
  if (entry.state == State::starting && !entry.failure) entry.failure = std::move(reason);
  for (const auto& from : entry.waiting) {
    reply(from, entry.failure ? Result<void>(*entry.failure) : Result<void>());
  }
  // A master that was killed has told nothing.
  if (entry.state == State::running && ran && !reason.is_shutdown()) ended(entry, reason);
  for (Waiting& again : entry.start_again) {
    if (auto answer = begin(std::move(again.request), again.from)) {
      reply(again.from, *std::move(answer));
    }
  }
}

void ApplicationController::report(const std::string& line) const {
  if (args_.report) args_.report(line);
}

namespace {

/// The program from its start to its end: the process that otp::run starts.
class Program {
 public:
  Program(std::vector<Application> applications, ControllerHooks hooks)
      : applications_(std::move(applications)), hooks_(std::move(hooks)) {}

  Async<int> run() {
    trap_exit(true);
    ApplicationController::Args args{self(), hooks_.report};
    StartOptions options{.name = kControllerName};
    auto started = co_await start_link<ApplicationController>(std::move(args), std::move(options));
    if (!started.ok()) {
      fail("the application controller did not start: " + started.error().to_string());
      co_return status_;
    }
    controller_ = started.value();
    co_await start_all();
    while (!stopping_) {
      auto message = co_await receive<StopApplications, ProgramNews, ExitMessage>();
      stopping_ = true;
      if (message.index() == 0) break;
      if (message.index() == 2 && std::get<2>(message).from != controller_.pid()) {
        stopping_ = false;
      } else if (message.index() == 2 || std::get<1>(message).what == ProgramNews::What::failed) {
        status_ = 1;
      }
    }
    const CallOptions forever{.timeout = infinity};
    ApplicationController::StopAll stop_all;
    auto stopped = co_await try_call(controller_, stop_all, forever);
    if (!stopped.ok()) fail("the application controller ended: " + stopped.error().to_string());
    co_return status_;
  }

 private:
  Async<void> start_all() {
    std::string details;
    for (const Application& application : applications_) {
      ApplicationType type = application.type.value_or(ApplicationType::permanent);
      if (type == ApplicationType::none) continue;
      if (type == ApplicationType::load) {
        (void)application::load(application.name);
        continue;
      }
      auto started = co_await application::start(application.name, type);
      if (!started.ok()) {
        fail(application.name + " did not start: " + start_failure(started.error()));
        co_return;
      }
      if (co_await receive<StopApplications>(after(std::chrono::seconds(0)))) {
        stopping_ = true;
        co_return;
      }
      if (!application.ready) continue;
      if (!co_await add_details(application, details)) co_return;
    }
    co_await hooks_.ready(std::move(details));
  }

  // Without the call term: the line names the application.
  static std::string start_failure(const ExitReason& reason) {
    const std::vector<Term>& items = reason.term().items();
    const bool with_call = items.size() == 2 && items[1].kind() == Term::Kind::tuple &&
                           items[1].is_tagged(std::string(items[1].items()[0].text()), 3);
    return with_call ? items[0].to_string() : reason.to_string();
  }

  Async<bool> add_details(const Application& application, std::string& details) {
    std::string text, failure;
    try {
      text = co_await application.ready();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty()) {
      fail(application.name + " is not ready: " + failure);
      co_return false;
    }
    if (!details.empty() && !text.empty()) details += ' ';
    details += text;
    co_return true;
  }

  void fail(const std::string& line) {
    hooks_.report(line);
    if (hooks_.failed) hooks_.failed(line);
    status_ = 1;
    stopping_ = true;
  }

  const std::vector<Application> applications_;
  const ControllerHooks hooks_;
  Server<ApplicationController> controller_;
  int status_ = 0;
  bool stopping_ = false;
};

}  // namespace

Async<int> control_applications(std::vector<Application> applications, ControllerHooks hooks) {
  Program program(std::move(applications), std::move(hooks));
  co_return co_await program.run();
}

}  // namespace otp::internal

namespace otp::application {

namespace {

using internal::ApplicationController;

Name<ApplicationController> controller() {
  return Name<ApplicationController>(internal::kControllerName);
}

constexpr CallOptions kForever{.timeout = infinity};

// Those that `name` needs and itself, each after those that it needs.
void add_needed(const internal::ApplicationTable& table, const std::string& name,
                std::vector<std::string>& order) {
  if (std::find(order.begin(), order.end(), name) != order.end()) return;
  if (const Application* application = table.find(name)) {
    for (const std::string& needed : application->applications) add_needed(table, needed, order);
  }
  order.push_back(name);
}

}  // namespace

Async<Result<void>> start(std::string name, ApplicationType type) {
  ApplicationController::StartApplication request{std::move(name), type};
  co_return co_await otp::call(controller(), std::move(request), kForever);
}

Async<Result<std::vector<std::string>>> ensure_all_started(std::string name, ApplicationType type) {
  std::vector<std::string> order, started;
  internal::ApplicationTable* table = internal::application_table();
  if (table == nullptr) co_return ExitReason::noproc();
  add_needed(*table, name, order);
  for (const std::string& one : order) {
    auto result = co_await start(one, type);
    if (result.ok()) {
      started.push_back(one);
    } else if (!result.error().term().is_tagged("already_started", 2)) {
      ExitReason why(Term::tuple({Term::atom(one), result.error().term()}));
      for (; !started.empty(); started.pop_back()) (void)co_await stop(started.back());
      co_return why;
    }
  }
  co_return started;
}

Async<Result<void>> stop(std::string name) {
  ApplicationController::StopApplication request{std::move(name)};
  co_return co_await otp::call(controller(), std::move(request), kForever);
}

Async<Result<Pid>> start_controller() {
  StartOptions options{.name = internal::kControllerName};
  auto started = co_await otp::start_link<ApplicationController>({}, std::move(options));
  if (!started.ok()) co_return started.error();
  co_return started.value().pid();
}

}  // namespace otp::application
