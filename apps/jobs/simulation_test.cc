// The whole service in a Simulator: tree and settings of config/jobs.yaml, HTTP over the virtual
// network, scripted commands. Only its database is a real file.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/jobs/service.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/testing/configuration.h"
#include "otp/application/application.h"
#include "otp/base/json.h"
#include "otp/io/simulated_network.h"
#include "otp/io/testing/http_client.h"
#include "otp/runtime/runtime.h"
#include "otp/supervision/supervisor.h"
#include "otp/task/task.h"
#include "otp/testing/simulator.h"

namespace jobs {
namespace {

using namespace std::chrono_literals;
using otp::io::HttpResponse;
using otp::io::testing::HttpClient;

constexpr uint64_t kSeed = 2026;
constexpr int kClients = 12;
constexpr int kJobsEach = 6;

/// A folder for one database, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = std::filesystem::temp_directory_path() / "jobs_simulation_XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = path;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

otp::config::Configuration shipped_configuration(const std::string& folder) {
  std::ifstream file("config/jobs.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  auto result = testing::check(text.str(), {{"JOBS__DATABASE", folder + "/jobs.db"}});
  INFO(result.text());
  REQUIRE(result.ok());
  return std::move(*result.configuration);
}

/// What the shipped commands do, as far as a script knows: it does not see their input.
otp::io::ScriptedChild play(const otp::io::ChildCommand& command) {
  const std::string& text = command.argv.back();
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("sha256sum")) return {.runs_for = 3ms, .echoes_input = true};
  if (has("sleep")) return {.runs_for = 500ms};
  return {.runs_for = 1ms, .exit = {.code = 3}, .error = "failing as asked\n"};
}

struct Outcome {
  std::string states;  ///< of all jobs, the newest first
  otp::Duration took{};
  uint64_t hash = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

otp::io::Address address() { return *otp::io::Address::parse("127.0.0.1:8080"); }

/// Submits a few jobs and cancels the last one.
otp::Async<void> be_a_client(int number) {
  const char* kinds[] = {"sha256", "sleep", "fail"};
  HttpClient client = co_await HttpClient::connect(address());
  std::string last;
  for (int i = 0; i < kJobsEach; ++i) {
    const std::string kind = kinds[(number + i) % 3];
    std::string body =
        "{\"kind\": \"" + kind + "\", \"input\": \"" + std::to_string(number) + "\"}";
    const HttpResponse answer = co_await client.request("POST", "/jobs", std::move(body));
    if (answer.status != 202) throw std::runtime_error(answer.body);
    last = std::string(otp::json::parse(answer.body).at("id").as_string());
  }
  const HttpResponse cancelled = co_await client.request("DELETE", "/jobs/" + last);
  if (cancelled.status != 200 && cancelled.status != 409) throw std::runtime_error(cancelled.body);
}

otp::Async<bool> any_in(std::string state) {
  HttpClient client = co_await HttpClient::connect(address());
  const HttpResponse page = co_await client.request("GET", "/jobs?state=" + state);
  co_return !otp::json::parse(page.body).at("jobs").as_array().empty();
}

otp::Async<std::string> all_states() {
  HttpClient client = co_await HttpClient::connect(address());
  const HttpResponse page = co_await client.request("GET", "/jobs?limit=1000");
  std::string text;
  const otp::json::value parsed = otp::json::parse(page.body);
  for (const auto& job : parsed.at("jobs").as_array()) {
    text += std::string(job.at("state").as_string()) + " " +
            std::to_string(job.at("attempts").as_int64()) + "\n";
  }
  co_return text;
}

/// The application from its start to its orderly stop.
otp::Async<std::string> whole_life(otp::SupervisorSpec spec) {
  otp::trap_exit(true);
  const auto supervisor = (co_await otp::Supervisor::start_link(std::move(spec))).or_exit();
  std::vector<otp::TaskOf<void>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(otp::Task::async(be_a_client, i));
  co_await otp::Task::await_many(std::move(clients), 1min);
  while (co_await any_in("queued") || co_await any_in("running")) co_await otp::sleep(100ms);
  std::string states = co_await all_states();
  const otp::Reference end = otp::monitor(supervisor.pid());
  otp::exit(supervisor.pid(), otp::ExitReason::shutdown());
  auto ours = [end](const otp::Down& down) { return down.reference == end; };
  co_await otp::receive<otp::Down>(ours);
  co_return states;
}

Outcome simulate(uint64_t seed) {
  TemporaryFolder folder;
  const otp::config::Configuration configuration = shipped_configuration(folder.path());
  otp::Simulator simulator(seed,
                           otp::io::simulated_options({}, {}, otp::io::SimulatedPrograms(play)));
  simulator.impl().attach(otp::stable_hash<Settings>, configuration.settings);
  Outcome outcome;
  outcome.states = simulator.run(
      whole_life, otp::supervisor_spec(configuration.supervisor, application().servers));
  outcome.took = simulator.now();
  outcome.hash = simulator.trace_hash();
  return outcome;
}

}  // namespace

TEST_CASE("the whole service runs in the Simulator, HTTP and commands included", "[jobs][sim]") {
  const Outcome outcome = simulate(kSeed);
  std::istringstream lines(outcome.states);
  int jobs = 0;
  int done = 0;
  for (std::string line; std::getline(lines, line); ++jobs) {
    done += line == "done 1";
    const bool right = line == "done 1" || line == "failed 3" || line.starts_with("cancelled");
    CHECK(right);
  }
  CHECK(jobs == kClients * kJobsEach);
  CHECK(done >= kClients * (kJobsEach / 3 * 2 - 1));
  CHECK(outcome.took < 30s);
}

TEST_CASE("one seed of the whole service gives one trace", "[jobs][sim]") {
  const Outcome outcome = simulate(kSeed);
  CHECK(outcome == simulate(kSeed));
  CHECK(outcome.hash != simulate(kSeed + 1).hash);
  // The same in an optimised build and under each sanitizer, see otp/testing/trace_test.cc.
  CHECK(outcome.hash == 0x3a38eca49cc84f17u);
}

}  // namespace jobs
