#include "otp/io/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "otp/io/internal/http_connection.h"
#include "otp/io/internal/memory_order.h"

namespace otp::io {

using internal::acquire;
using internal::HttpAccepted;
using internal::HttpConnectionState;
using internal::HttpPlace;
using internal::HttpShared;
using internal::kLastWrite;
using internal::relaxed;
using internal::release;

namespace {

constexpr auto kListenAgain = std::chrono::milliseconds(5);
constexpr uint32_t kRefusedMax = 64;  // that get a 503 at once; beyond that they are just closed

bool same_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Connections that leave a quarter of the descriptors to everything else.
uint32_t connections_possible(uint32_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return static_cast<uint32_t>(std::min<rlim_t>(wanted, limit.rlim_cur - limit.rlim_cur / 4));
}

Async<void> accept_connections(Listener listener, Pid server, std::shared_ptr<HttpShared> shared) {
  const uint32_t most = shared->options.connections_max;
  for (;;) {
    Socket socket = co_await listener.accept();
    const uint32_t open = shared->open.load(relaxed);
    if (open >= most && shared->service.refused) shared->service.refused();
    if (open >= most + kRefusedMax) continue;
    HttpAccepted accepted{std::move(socket), std::make_shared<HttpPlace>(shared), open >= most};
    Sent sent = otp::send(server, std::move(accepted));
    co_await sent;
  }
}

}  // namespace

std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

internal::HttpPlace::HttpPlace(std::shared_ptr<HttpShared> shared) : shared_(std::move(shared)) {
  shared_->open.fetch_add(1, relaxed);
}
internal::HttpPlace::~HttpPlace() { shared_->open.fetch_sub(1, relaxed); }

HttpServer::HttpServer(Args args) : shared_(std::make_shared<HttpShared>()) {
  shared_->options = std::move(args.options);
  shared_->service = std::move(args.service);
}

Async<Init> HttpServer::init() {
  trap_exit(true);
  HttpOptions& options = shared_->options;
  options.connections_max = connections_possible(options.connections_max);
  std::optional<Address> wanted = Address::parse(options.listen);
  if (!wanted) {
    co_return otp::stop(ExitReason::tagged("bad_address", Term(std::string(options.listen))));
  }
  if (wanted->port == 0) wanted->port = options.picked_port->load(relaxed);
  const auto attempts = options.address_in_use_patience / kListenAgain;
  for (int64_t attempt = 0;; ++attempt) {
    auto made = Listener::listen(*wanted);
    if (auto* listener = std::get_if<Listener>(&made)) {
      address_ = listener->local_address();
      options.picked_port->store(address_.port, relaxed);
      acceptor_ = spawn_link(accept_connections, std::move(*listener), self(), shared_);
      co_return otp::ok();
    }
    const SystemError& error = std::get<SystemError>(made);
    if (error.code != EADDRINUSE || attempt >= attempts) {
      co_return otp::stop(ExitReason::tagged("listen", Term(error.to_string())));
    }
    co_await otp::sleep(kListenAgain);
  }
}

void HttpServer::handle_info(HttpAccepted accepted) {
  auto state = std::make_shared<HttpConnectionState>();
  const bool refused = accepted.refused;
  const Pid pid = refused
                      ? spawn_link(internal::refuse_connection, std::move(accepted))
                      : spawn_link(internal::serve_connection, std::move(accepted), shared_, state);
  connections_.emplace(pid.id, std::move(state));
}

bool HttpServer::forget(const ExitMessage& message) {
  if (message.from == acceptor_) acceptor_ = {};
  return connections_.erase(message.from.id) > 0;
}

CastResult HttpServer::handle_info(ExitMessage message) {
  if (forget(message)) return otp::noreply();
  return otp::stop(message.reason);  // the acceptor, or somebody who is linked to the server
}

void HttpServer::end_connections(int phase) {
  for (const auto& [id, state] : connections_) {
    if (state->phase.load(acquire) == phase) otp::exit(Pid{0, id}, ExitReason::shutdown());
  }
}

Async<void> HttpServer::terminate(ExitReason) {
  shared_->draining.store(true, release);
  if (acceptor_ != Pid{}) otp::exit(acceptor_, ExitReason::shutdown());
  end_connections(HttpConnectionState::reading);
  const auto now = [] { return otp::internal::self_process().system().now(); };
  const int64_t patient_until = now() + Duration(kLastWrite).count();
  bool patient = true;
  while (acceptor_ != Pid{} || !connections_.empty()) {
    const Duration left{std::max<int64_t>(patient_until - now(), 0)};
    const Timeout limit = patient ? Timeout(left) : infinity;
    std::optional<ExitMessage> message = co_await receive<ExitMessage>(after(limit));
    if (message) {
      forget(*message);
    } else {
      patient = false;
      end_connections(HttpConnectionState::reading);
      end_connections(HttpConnectionState::writing);
    }
  }
}

}  // namespace otp::io
