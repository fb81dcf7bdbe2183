#include "apps/jobs/listener.h"

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "apps/jobs/limiters.h"
#include "apps/jobs/service_metrics.h"
#include "apps/jobs/store.h"

namespace jobs {
namespace {

/// Whom requests are passed on to.
struct Servers {
  otp::Name<Store> store;
  otp::Name<Limiters> limiters;
  std::optional<otp::Name<otp::io::HttpServer>> listener;
};
struct Site {
  HttpApi api;
  Servers servers;
};

constexpr std::chrono::seconds kRetrySoon{1};
constexpr std::chrono::seconds kRetryLater{5};

HttpHead head_of(const otp::io::HttpRequest& request) {
  return {.method = request.method,
          .target = request.target,
          .minor_version = request.minor_version,
          .headers = request.headers};
}

otp::io::HttpResponse to_send(HttpResponse response) {
  service_metrics().http_response(response.status).add();
  response.headers.emplace_back("Content-Type", std::move(response.content_type));
  if (!response.body.ends_with('\n')) response.body += '\n';  // for who reads it in a terminal
  return {.status = response.status,
          .body = std::move(response.body),
          .headers = std::move(response.headers),
          .close = response.close};
}

HttpResponse unavailable(const StoreError& error) {
  return HttpApi::unavailable(error.text, error.passes() ? kRetrySoon : kRetryLater);
}

/// A server that is being restarted is one that cannot do it now.
template <class Reply, class Respond>
HttpResponse respond(const otp::Result<Reply>& reply, Respond respond_to) {
  if (!reply.ok()) {
    return HttpApi::unavailable("the service is restarting: " + reply.error().to_string(),
                                kRetrySoon);
  }
  if (const auto* error = std::get_if<StoreError>(&reply.value())) return unavailable(*error);
  return respond_to(reply.value());
}

otp::Async<HttpResponse> submit(const Servers& servers, Submission submission) {
  const std::string kind = submission.kind;
  auto reply = co_await Limiters::submit(servers.limiters, std::move(submission));
  co_return respond(reply, [&](const Submit::Reply& outcome) {
    if (const auto* refused = std::get_if<Limiter::Refused>(&outcome)) {
      return HttpApi::refused(*refused, kind);
    }
    return HttpApi::submitted(std::get<Job>(outcome));
  });
}

otp::Async<HttpResponse> cancel(const Servers& servers, JobId id) {
  auto reply = co_await Limiters::cancel(servers.limiters, id);
  co_return respond(reply, [&](const Cancel::Reply& outcome) {
    return HttpApi::stopped(std::get<OperationResult>(outcome), id);
  });
}

otp::Async<HttpResponse> show(const Servers& servers, JobId id) {
  auto reply = co_await Store::find(servers.store, id);
  co_return respond(reply, [&](const FindJob::Reply& outcome) {
    return HttpApi::shown(std::get<std::optional<Job>>(outcome), id);
  });
}

otp::Async<HttpResponse> list(const Servers& servers, ListQuery query) {
  auto reply = co_await Store::list(servers.store, query);
  co_return respond(reply, [](const FindJobs::Reply& outcome) {
    return HttpApi::listed(std::get<JobList>(outcome));
  });
}

otp::Async<HttpResponse> health(const Servers& servers) {
  co_return HttpApi::health(co_await Store::writes(servers.store));
}

otp::Async<HttpResponse> metrics(const Servers& servers) {
  if (servers.listener) {
    auto open = co_await otp::try_call(*servers.listener, otp::io::HttpConnections{});
    if (open.ok()) service_metrics().connections.set(static_cast<int64_t>(open.value()));
  }
  co_return HttpApi::metrics(service_metrics_text());
}

otp::Async<HttpResponse> act(const Servers& servers, HttpAction action) {
  if (auto* wanted = std::get_if<SubmitJob>(&action)) {
    co_return co_await submit(servers, std::move(wanted->submission));
  }
  if (auto* wanted = std::get_if<ShowJob>(&action)) co_return co_await show(servers, wanted->id);
  if (auto* wanted = std::get_if<ListJobs>(&action)) {
    co_return co_await list(servers, wanted->query);
  }
  if (auto* wanted = std::get_if<StopJob>(&action)) co_return co_await cancel(servers, wanted->id);
  if (std::holds_alternative<ShowHealth>(action)) co_return co_await health(servers);
  if (std::holds_alternative<ShowMetrics>(action)) co_return co_await metrics(servers);
  co_return std::get<HttpResponse>(std::move(action));
}

otp::Async<otp::io::HttpResponse> answer(std::shared_ptr<const Site> site,
                                         otp::io::HttpRequest request) {
  HttpAction action = site->api.route(head_of(request), request.body);
  co_return to_send(co_await act(site->servers, std::move(action)));
}

}  // namespace

otp::io::HttpServer::Args http_server_args(const Settings& settings, const Listener::Args& servers,
                                           const std::optional<std::string>& name,
                                           std::shared_ptr<otp::Atomic<uint16_t>> port) {
  Site made{.api = HttpApi({.kinds = *settings.kinds, .token = settings.token}),
            .servers = {.store = servers.store, .limiters = servers.limiters, .listener = {}}};
  if (name) made.servers.listener.emplace(*name);
  const auto site = std::make_shared<const Site>(std::move(made));
  otp::io::HttpServer::Args args;
  args.options = {.listen = settings.listen.to_string(),
                  .header_bytes_max = settings.http.max_header.count,
                  .body_bytes_max = site->api.body_bytes_max(),
                  .idle_timeout = settings.http.idle_timeout,
                  .header_timeout = settings.http.header_timeout,
                  .body_timeout = settings.http.body_timeout,
                  .write_timeout = settings.http.write_timeout,
                  .connections_max = settings.http.max_connections,
                  .picked_port = std::move(port)};
  args.service.handle = [site](otp::io::HttpRequest request) {
    return answer(site, std::move(request));
  };
  args.service.check_head =
      [site](const otp::io::HttpRequest& request) -> std::optional<otp::io::HttpResponse> {
    auto refused = site->api.check_head(head_of(request));
    if (!refused) return std::nullopt;
    return to_send(std::move(*refused));
  };
  args.service.refused = [] { service_metrics().connections_refused.add(); };
  return args;
}

}  // namespace jobs
