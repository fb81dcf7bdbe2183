#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/jobs/http_api.h"
#include "apps/jobs/settings.h"
#include "otp/config/required.h"
#include "otp/io/http_server.h"

namespace jobs {

class Store;
class Limiters;

/// In the configuration: the HTTP server.
struct Listener {
  struct Args {
    otp::Required<otp::Name<Store>> store = {};
    otp::Required<otp::Name<Limiters>> limiters = {};
  };
};

/// The HTTP server as the settings want it: requests are checked and routed by HttpApi, and what
/// they ask for is done by the store and the limiters.
///
/// Takes: name: its own, if it has one: then the metrics tell how many connections it has.
///        port: remembered, so that a restart listens where clients look for it.
otp::io::HttpServer::Args http_server_args(const Settings& settings, const Listener::Args& servers,
                                           const std::optional<std::string>& name,
                                           std::shared_ptr<otp::Atomic<uint16_t>> port);

}  // namespace jobs
