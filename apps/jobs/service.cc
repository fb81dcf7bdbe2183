#include "apps/jobs/service.h"

#include <memory>
#include <string>

#include "apps/jobs/limiters.h"
#include "apps/jobs/listener.h"
#include "apps/jobs/names.h"
#include "apps/jobs/settings.h"
#include "apps/jobs/spawner.h"
#include "apps/jobs/store.h"
#include "otp/supervision/dynamic_supervisor.h"

namespace jobs {
namespace {

/// In the configuration: a dynamic supervisor, with a worker for each command that runs.
struct Workers {};
/// In the configuration: the HTTP server.
struct Listener {};

/// Workers are temporary and never restarted, so no limit on restarts is ever reached.
otp::ChildSpec workers_child(const otp::config::ChildDecl& decl) {
  return otp::dynamic_supervisor(decl.id, {},
                                 {.name = decl.name.value_or(""), .shutdown = decl.shutdown});
}

otp::ChildSpec listener_child(const otp::config::ChildDecl& decl) {
  auto port = std::make_shared<otp::Atomic<uint16_t>>();
  return otp::child<otp::io::HttpServer>(
      decl.id, [port] { return http_server_args(otp::settings<Settings>(), port); },
      {.name = decl.name.value_or(""), .restart = decl.restart, .shutdown = decl.shutdown});
}

otp::Async<std::string> ready() {
  const auto address = co_await otp::call(kListener, otp::io::HttpAddress{});
  const std::string url = "http://" + address.to_string();
  const Kinds& kinds = *otp::settings<Settings>().kinds;
  const std::string kind = kinds.contains("sha256") ? "sha256" : kinds.begin()->first;
  co_return url + "  try: curl -d '{\"kind\": \"" + kind + "\", \"input\": \"hello\"}' " + url +
      "/jobs";
}

}  // namespace

otp::Application application() {
  otp::Application jobs;
  jobs.name = "jobs";
  jobs.servers = otp::servers<Store, Limiters, Spawner>();
  jobs.servers.push_back({otp::config::describe_server<Workers>(), &workers_child});
  jobs.servers.push_back({otp::config::describe_server<Listener>(), &listener_child});
  jobs.settings = otp::settings_type<Settings>();
  jobs.ready = ready;
  return jobs;
}

}  // namespace jobs
