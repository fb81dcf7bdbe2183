#pragma once

#include "otp/behaviour/gen_server.h"

namespace otp {
class DynamicSupervisor;
}
namespace otp::io {
class HttpServer;
}

namespace jobs {

class Store;
class Limiters;
class Spawner;

/// The names of the servers, as config/jobs.yaml gives them.
inline const otp::Name<Store> kStore("store");
inline const otp::Name<Limiters> kLimiters("limiters");
inline const otp::Name<Spawner> kSpawner("spawner");
inline const otp::Name<otp::DynamicSupervisor> kWorkers("workers");
inline const otp::Name<otp::io::HttpServer> kListener("listener");

/// For calls that end with the answer or with the server that was asked.
inline constexpr otp::CallOptions kForever{.timeout = otp::infinity};

}  // namespace jobs
