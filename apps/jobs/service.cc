#include "apps/jobs/service.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "apps/jobs/limiters.h"
#include "apps/jobs/listener.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/store.h"
#include "otp/application/control.h"
#include "otp/application/log.h"
#include "otp/io/child_server.h"
#include "otp/supervision/dynamic_supervisor.h"
#include "otp/supervision/tree.h"

namespace jobs {
namespace {

constexpr const char* kApplication = "jobs";
constexpr std::string_view kDomain = "jobs";

/// Workers are temporary and never restarted, so no limit on restarts is ever reached.
otp::ChildSpec workers_child(const otp::config::ChildDecl& decl) {
  return otp::dynamic_supervisor(decl.id, {}, otp::options_of(decl));
}

otp::ChildSpec spawner_child(const otp::config::ChildDecl& decl) {
  return otp::child<otp::io::ChildServer>(
      decl.id,
      [] {
        return otp::io::ChildServer::Args{.lock = otp::settings<Settings>().database + ".commands"};
      },
      otp::options_of(decl));
}

otp::ChildSpec listener_child(const otp::config::ChildDecl& decl) {
  auto port = std::make_shared<otp::Atomic<uint16_t>>();
  return otp::child<otp::io::HttpServer>(
      decl.id,
      [port, servers = decl.args_of<Listener>(), name = decl.name] {
        return http_server_args(otp::settings<Settings>(), servers, name, port);
      },
      otp::options_of(decl));
}

/// How the configuration calls a server of the library that takes no arguments from it.
template <class S>
otp::config::ServerDecl known_as(std::string_view name) {
  return {.name = std::string(name), .type = std::string(otp::qualified_type_name<S>())};
}

/// The first child that runs S, itself or in a supervisor below; nobody if there is none.
template <class S>
otp::TreeNode find_process(const otp::TreeNode& tree) {
  if (tree.server == otp::type_name<S>()) return tree;
  for (const otp::TreeNode& child : tree.children) {
    otp::TreeNode found = find_process<S>(child);
    if (found.pid != otp::Pid{}) return found;
  }
  return {};
}

/// A stop kills commands whose kind has more time to end than the supervisor of the workers.
void warn_of_kills(const otp::TreeNode& tree) {
  const otp::TreeNode workers = find_process<otp::DynamicSupervisor>(tree);
  if (workers.pid == otp::Pid{} || workers.shutdown.is_infinity()) return;
  for (const auto& [name, kind] : *otp::settings<Settings>().kinds) {
    if (kind.kill_after < workers.shutdown.timeout().duration()) continue;
    otp::log(otp::LogLevel::warning, kDomain,
             "kind " + name + ": its kill_after is not below the shutdown time of " + workers.id +
                 ": at a stop its commands are killed before it is over, and run again at the next "
                 "start");
  }
}

otp::Async<std::string> ready() {
  otp::application::RunningApplication self;
  for (auto& running : otp::application::which()) {
    if (running.name == kApplication) self = std::move(running);
  }
  const otp::TreeNode tree = co_await otp::tree(otp::SupervisorRef(self.supervisor));
  warn_of_kills(tree);
  const otp::Server<otp::io::HttpServer> listener(find_process<otp::io::HttpServer>(tree).pid);
  if (listener.pid() == otp::Pid{}) co_return "";
  const auto address = co_await otp::call(listener, otp::io::HttpAddress{});
  const std::string url = "http://" + address.to_string();
  otp::log(otp::LogLevel::notice, kDomain, "version " + self.version + " serves " + url);
  const Kinds& kinds = *otp::settings<Settings>().kinds;
  const std::string kind = kinds.contains("sha256") ? "sha256" : kinds.begin()->first;
  co_return url + "  try: curl -d '{\"kind\": \"" + kind + "\", \"input\": \"hello\"}' " + url +
      "/jobs";
}

}  // namespace

otp::Application application() {
  otp::Application jobs;
  jobs.name = kApplication;
  jobs.servers = otp::servers<Store, Limiters>();
  jobs.servers.push_back({known_as<otp::io::ChildServer>("Spawner"), &spawner_child});
  jobs.servers.push_back({known_as<otp::DynamicSupervisor>("Workers"), &workers_child});
  jobs.servers.push_back({otp::config::describe_server<Listener>(), &listener_child});
  jobs.settings = otp::settings_type<Settings>();
  jobs.ready = ready;
  return jobs;
}

}  // namespace jobs
