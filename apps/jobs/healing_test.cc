// Kills the servers of the running tree, one after the other.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/limiters.h"
#include "apps/jobs/names.h"
#include "apps/jobs/service.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/store.h"
#include "otp/application/application.h"
#include "otp/io/asio_poller.h"
#include "otp/io/guardian.h"
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

std::shared_ptr<const Settings> settings_in(const std::string& folder) {
  auto settings = std::make_shared<Settings>();
  settings->database = folder + "/jobs.db";
  Kinds kinds;
  kinds["echo"].command = std::vector<std::string>{"cat"};
  kinds["hang"].command = std::vector<std::string>{"sleep", "1000"};
  settings->kinds = std::move(kinds);
  return settings;
}

otp::SupervisorSpec tree() {
  otp::config::SupervisorDecl decl;
  decl.strategy = otp::Strategy::rest_for_one;
  decl.intensity = 50;
  for (const char* start : {"Store", "Limiters", "Spawner", "Workers", "Listener"}) {
    otp::config::ChildDecl child;
    child.start = start;
    child.id = start;
    child.id[0] = static_cast<char>(child.id[0] - 'A' + 'a');
    child.name = child.id;
    decl.children.push_back(child);
  }
  return otp::supervisor_spec(decl, application().servers);
}

/// Submits until a limiter is there to take it.
otp::Async<JobId> submit(std::string kind, std::string input) {
  for (auto waited = 0ms; waited < kPatience; waited += 5ms) {
    Submission submission{kind, input};
    auto reply = co_await Limiters::submit(std::move(submission));
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
    auto reply = co_await Store::find(id);
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

struct Healed {
  Job interrupted = {};
  Job next = {};
};

/// Kills `name` while a job runs, and looks at what becomes of that job and of the next one.
otp::Async<Healed> kill_during_a_job(std::string name) {
  otp::trap_exit(true);
  auto supervisor = (co_await otp::Supervisor::start_link(tree())).or_exit();
  const JobId running = co_await submit("hang", "");
  co_await wait(running, State::running, 1);
  const otp::Pid victim = co_await find_victim(name);
  const otp::Reference monitor = otp::monitor(victim);
  otp::exit(victim, otp::ExitReason::kill());
  auto ours = [monitor](const otp::Down& down) { return down.reference == monitor; };
  co_await otp::receive<otp::Down>(ours);
  Healed healed;
  healed.interrupted = co_await wait(running, State::running, name == "listener" ? 1 : 2);
  const JobId next = co_await submit("echo", "hello");
  healed.next = co_await wait(next, State::done, 1);
  const otp::Reference end = otp::monitor(supervisor.pid());
  otp::exit(supervisor.pid(), otp::ExitReason::shutdown());
  auto stopped = [end](const otp::Down& down) { return down.reference == end; };
  co_await otp::receive<otp::Down>(stopped);
  co_return healed;
}

}  // namespace

TEST_CASE("whichever server is killed, the tree heals and no job is lost", "[jobs]") {
  const char* name = GENERATE("listener", "worker", "workers", "spawner", "limiters", "store");
  TemporaryFolder folder;
  otp::System system(otp::io::system_options());
  system.impl().attach(otp::stable_hash<Settings>, settings_in(folder.path()));
  INFO(name);
  const Healed healed = system.run(kill_during_a_job, std::string(name));
  CHECK(healed.interrupted.state == State::running);
  CHECK(healed.interrupted.attempts == (std::string_view(name) == "listener" ? 1 : 2));
  CHECK(healed.next.state == State::done);
  CHECK(healed.next.output == "hello");
}

}  // namespace jobs
