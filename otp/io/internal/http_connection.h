#pragma once

#include <chrono>
#include <memory>

#include "otp/base/atomic.h"
#include "otp/io/http_server.h"
#include "otp/io/internal/memory_order.h"

namespace otp::io::internal {

/// How long the answers that are being written when a server stops may still take, and each one
/// that is begun after that.
constexpr auto kLastWrite = std::chrono::seconds(1);

/// What a server and its connections share.
struct HttpShared {
  HttpOptions options;
  HttpService service;
  Atomic<uint32_t> open{0};      // connections that hold a place
  Atomic<bool> draining{false};  // no further request is begun
};

/// What a connection is doing, for a server that stops.
struct HttpConnectionState {
  enum Phase : int { reading, handling, writing };
  Atomic<int> phase{reading};
};

/// The body of a connection's process.
Async<void> serve_connection(HttpAccepted accepted, std::shared_ptr<HttpShared> shared,
                             std::shared_ptr<HttpConnectionState> state);
/// Answers 503 and closes.
Async<void> refuse_connection(HttpAccepted accepted);

}  // namespace otp::io::internal
