// Kills the servers of the running tree, one after the other.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/limiters.h"
#include "apps/jobs/service.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/sqlite.h"
#include "apps/jobs/store.h"
#include "apps/jobs/testing/configuration.h"
#include "apps/jobs/worker.h"
#include "otp/application/application.h"
#include "otp/base/log.h"
#include "otp/io/asio_poller.h"
#include "otp/io/guardian.h"
#include "otp/runtime/process_info.h"
#include "otp/runtime/system.h"
#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/supervisor.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 30s;

// The first instructions of this binary: it is its own guardian.
__attribute__((constructor)) void become_guardian(int argc, char** argv) {
  if (otp::io::is_guardian(argc, argv)) ::_exit(otp::io::guardian_main());
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = std::filesystem::temp_directory_path() / "jobs_healing_XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const otp::Name<Store> kStore("store");
const otp::Name<Limiters> kLimiters("limiters");
const otp::Name<otp::io::ChildServer> kSpawner("spawner");
const otp::Name<otp::DynamicSupervisor> kWorkers("workers");

otp::config::Configuration configuration_in(const std::string& folder) {
  auto result = testing::check(R"(application: jobs
settings:
  listen: 127.0.0.1:0
  kinds: {echo: {command: [cat]}, hang: {command: [sleep, "1000"]}}
supervisor:
  strategy: rest_for_one
  intensity: 50
  children:
    - {id: store, start: Store, name: store}
    - id: limiters
      start: Limiters
      name: limiters
      args: {store: store, spawner: spawner, workers: workers}
    - {id: spawner, start: Spawner, name: spawner}
    - {id: workers, start: Workers, name: workers}
    - {id: listener, start: Listener, name: listener, args: {store: store, limiters: limiters}}
)",
                               {{"JOBS__DATABASE", folder + "/jobs.db"}});
  INFO(result.text());
  REQUIRE(result.ok());
  return std::move(*result.configuration);
}

otp::SupervisorSpec tree(const otp::config::Configuration& configuration) {
  return otp::supervisor_spec(configuration.supervisor, application().servers);
}

/// Submits until a limiter is there to take it.
otp::Async<JobId> submit(std::string kind, std::string input) {
  for (auto waited = 0ms; waited < kPatience; waited += 5ms) {
    Submission submission{kind, input};
    auto reply = co_await Limiters::submit(kLimiters, std::move(submission));
    if (reply.ok()) {
      if (const Job* job = std::get_if<Job>(&reply.value())) co_return job->id;
    }
    co_await otp::sleep(5ms);
  }
  co_return 0;
}

/// The job once it is in that state at that attempt; else as it was last seen.
otp::Async<Job> wait(JobId id, State state, int attempts) {
  Job seen;
  for (auto waited = 0ms; waited < kPatience; waited += 5ms) {
    auto reply = co_await Store::find(kStore, id);
    if (reply.ok()) {
      if (auto* job = std::get_if<std::optional<Job>>(&reply.value()); job && *job) seen = **job;
    }
    if (seen.state == state && seen.attempts == attempts) break;
    co_await otp::sleep(5ms);
  }
  co_return seen;
}

otp::Async<otp::Pid> find_victim(std::string name) {
  if (name != "worker") co_return otp::whereis(name).value_or(otp::Pid{});
  auto children = co_await otp::DynamicSupervisor::which_children(kWorkers);
  co_return children.empty() ? otp::Pid{} : children.front().pid;
}

/// Ends the tree and waits for it.
otp::Async<void> stop_tree(otp::Pid supervisor) {
  const otp::Reference end = otp::monitor(supervisor);
  otp::exit(supervisor, otp::ExitReason::shutdown());
  auto stopped = [end](const otp::Down& down) { return down.reference == end; };
  co_await otp::receive<otp::Down>(stopped);
}

/// What was logged, as one text.
class Records final : public otp::LogSink {
 public:
  bool enabled(otp::LogLevel, std::string_view) const noexcept override { return true; }
  void log(otp::LogRecord&& record) noexcept override {
    std::lock_guard lock(mutex_);
    text_ += record.message + "\n";
    for (const otp::LogField& field : record.fields) text_ += field.key + "=" + field.value + "\n";
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Starts a worker that throws, beside one whose command runs. Returns that job and the next one.
otp::Async<std::pair<Job, Job>> throw_in_a_worker(otp::SupervisorSpec tree) {
  otp::trap_exit(true);
  auto supervisor = (co_await otp::Supervisor::start_link(std::move(tree))).or_exit();
  const JobId running = co_await submit("hang", "");
  co_await wait(running, State::running, 1);
  Job unheard_of;
  unheard_of.kind = "unheard_of";
  otp::ChildSpec spec = otp::child<Worker>(
      "worker",
      {.job = unheard_of, .clock = {}, .owner = otp::self(), .store = kStore, .spawner = kSpawner},
      {.restart = otp::Restart::temporary});
  const auto child = (co_await otp::DynamicSupervisor::start_child(kWorkers, std::move(spec)));
  const otp::Reference monitor = otp::monitor(child.value().pid);
  auto ours = [monitor](const otp::Down& down) { return down.reference == monitor; };
  co_await otp::receive<otp::Down>(ours);
  const JobId next = co_await submit("echo", "hello");
  Job done = co_await wait(next, State::done, 1);
  Job still = co_await wait(running, State::running, 1);
  co_await stop_tree(supervisor.pid());
  co_return std::pair(std::move(still), std::move(done));
}

struct Healed {
  Job interrupted = {};
  Job next = {};
};

/// Kills `victim` and waits for the end of `watched`.
otp::Async<void> kill(otp::Pid victim, otp::Pid watched) {
  const otp::Reference monitor = otp::monitor(watched);
  otp::exit(victim, otp::ExitReason::kill());
  auto ours = [monitor](const otp::Down& down) { return down.reference == monitor; };
  co_await otp::receive<otp::Down>(ours);
}

/// What becomes of the job that ran and of the next one; then the tree is stopped.
otp::Async<Healed> look_at_jobs(otp::Pid supervisor, JobId running, int attempts) {
  Healed healed;
  healed.interrupted = co_await wait(running, State::running, attempts);
  const JobId next = co_await submit("echo", "hello");
  healed.next = co_await wait(next, State::done, 1);
  co_await stop_tree(supervisor);
  co_return healed;
}

/// Kills `name` while a job runs.
otp::Async<Healed> kill_during_a_job(otp::SupervisorSpec tree, std::string name) {
  otp::trap_exit(true);
  auto supervisor = (co_await otp::Supervisor::start_link(std::move(tree))).or_exit();
  const JobId running = co_await submit("hang", "");
  co_await wait(running, State::running, 1);
  const otp::Pid victim = co_await find_victim(name);
  co_await kill(victim, victim);
  co_return co_await look_at_jobs(supervisor.pid(), running, name == "listener" ? 1 : 2);
}

/// Kills the process that writes for the store, while it waits for the disk.
otp::Async<Healed> kill_a_writer(otp::SupervisorSpec tree, std::string database) {
  otp::trap_exit(true);
  auto supervisor = (co_await otp::Supervisor::start_link(std::move(tree))).or_exit();
  const JobId running = co_await submit("hang", "");
  co_await wait(running, State::running, 1);
  const otp::Pid store = otp::whereis("store").value_or(otp::Pid{});
  Sqlite lock(database, 5s);
  lock.run("BEGIN IMMEDIATE");
  otp::spawn([]() -> otp::Async<void> { (void)co_await submit("echo", "unheard"); });
  otp::Pid writer{};
  while (writer == otp::Pid{}) {
    const auto info = co_await otp::process_info(store);
    for (const otp::Pid linked : info->links) {
      if (linked != supervisor.pid()) writer = linked;
    }
  }
  co_await kill(writer, store);
  lock.rollback();
  co_return co_await look_at_jobs(supervisor.pid(), running, 2);
}

}  // namespace

TEST_CASE("a store whose writer dies ends, and is started again", "[jobs]") {
  TemporaryFolder folder;
  const otp::config::Configuration configuration = configuration_in(folder.path());
  otp::System system(otp::io::system_options());
  system.impl().attach(otp::stable_hash<Settings>, configuration.settings);
  const Healed healed = system.run(kill_a_writer, tree(configuration), folder.path() + "/jobs.db");
  CHECK(healed.interrupted.state == State::running);
  CHECK(healed.interrupted.attempts == 2);
  CHECK(healed.next.state == State::done);
}

TEST_CASE("whichever server is killed, the tree heals and no job is lost", "[jobs]") {
  const char* name = GENERATE("listener", "worker", "workers", "spawner", "limiters", "store");
  TemporaryFolder folder;
  const otp::config::Configuration configuration = configuration_in(folder.path());
  otp::System system(otp::io::system_options());
  system.impl().attach(otp::stable_hash<Settings>, configuration.settings);
  INFO(name);
  const Healed healed = system.run(kill_during_a_job, tree(configuration), std::string(name));
  CHECK(healed.interrupted.state == State::running);
  CHECK(healed.interrupted.attempts == (std::string_view(name) == "listener" ? 1 : 2));
  CHECK(healed.next.state == State::done);
  CHECK(healed.next.output == "hello");
}

TEST_CASE("a worker that throws is reported with where it threw, and the others go on", "[jobs]") {
  TemporaryFolder folder;
  const otp::config::Configuration configuration = configuration_in(folder.path());
  Records records;
  otp::SystemOptions options;
  options.log = &records;
  otp::System system(otp::io::system_options(std::move(options)));
  system.impl().attach(otp::stable_hash<Settings>, configuration.settings);
  const auto [still, done] = system.run(throw_in_a_worker, tree(configuration));
  CHECK(still.state == State::running);
  CHECK(still.attempts == 1);
  CHECK(done.state == State::done);
  const std::string text = records.text();
  CHECK(text.find("map::at") != std::string::npos);
  CHECK(text.find("jobs::Worker") != std::string::npos);
  CHECK(text.find("asked 1 job to end; 1 job to run again at the next start") != std::string::npos);
}

}  // namespace jobs
