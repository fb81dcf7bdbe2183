#pragma once

#include <memory>

#include "apps/jobs/http_api.h"
#include "apps/jobs/settings.h"
#include "otp/io/http_server.h"

namespace jobs {

/// The HTTP server as the settings want it: requests are checked and routed by HttpApi, and what
/// they ask for is done by the store and the limiters.
///
/// Takes: port: remembered, so that a restart listens where clients look for it.
otp::io::HttpServer::Args http_server_args(const Settings& settings,
                                           std::shared_ptr<otp::Atomic<uint16_t>> port);

}  // namespace jobs
