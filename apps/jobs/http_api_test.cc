#include "apps/jobs/http_api.h"

#include <catch2/catch.hpp>

#include "apps/jobs/http_target.h"
#include "apps/jobs/listen_address.h"
#include "apps/jobs/metrics.h"
#include "otp/base/json.h"

namespace jobs {
namespace {

using Words = std::vector<std::string>;

HttpApi make_api(const std::string& token = "") {
  Kinds kinds;
  kinds["sha256"] = {.command = Words{"sha256sum"}, .max_input = otp::kibibytes(1)};
  kinds["fail"] = {.command = Words{"false"}, .max_input = {10}};
  return HttpApi({.kinds = kinds, .token = otp::Secret(token)});
}

HttpHead head_of(const std::string& method, const std::string& target, HttpHeaders more = {}) {
  HttpHead head{.method = method, .target = target};
  head.headers = {{"Host", "localhost"}};
  for (auto& header : more) head.headers.push_back(std::move(header));
  return head;
}

/// The status of the refusal, or 0 when the request may go on.
int refusal(const HttpApi& api, const HttpHead& head) {
  const auto refused = api.check_head(head);
  if (refused) CHECK(otp::json::parse(refused->body).at("error").is_string());
  return refused ? refused->status : 0;
}

int refusal(const HttpHead& head) { return refusal(make_api(), head); }

std::string header(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return {};
}

/// The status when the whole request is refused, or 0.
int routed(const HttpHead& head, const std::string& body = "") {
  const HttpApi api = make_api();
  if (const int status = refusal(api, head)) return status;
  const HttpAction action = api.route(head, body);
  const auto* response = std::get_if<HttpResponse>(&action);
  return response == nullptr ? 0 : response->status;
}

template <class Action>
Action action_of(const HttpHead& head, const std::string& body = "") {
  const HttpApi api = make_api();
  REQUIRE(!api.check_head(head));
  HttpAction action = api.route(head, body);
  REQUIRE(std::holds_alternative<Action>(action));
  return std::get<Action>(action);
}

}  // namespace

TEST_CASE("each request is routed to what it asks for", "[jobs][http]") {
  const auto submit =
      action_of<SubmitJob>(head_of("POST", "/jobs"), R"({"kind":"sha256","input":"x"})");
  CHECK(submit.submission.kind == "sha256");
  CHECK(submit.submission.input == "x");
  CHECK(action_of<ShowJob>(head_of("GET", "/jobs/17")).id == 17);
  CHECK(action_of<ShowJob>(head_of("HEAD", "/jobs/17")).id == 17);
  CHECK(action_of<ShowJob>(head_of("GET", "/jobs/%31%37")).id == 17);
  CHECK(action_of<ShowJob>(head_of("GET", "http://any.host:80/jobs/17")).id == 17);
  CHECK(action_of<StopJob>(head_of("DELETE", "/jobs/17")).id == 17);
  action_of<ShowHealth>(head_of("GET", "/healthz"));
  action_of<ShowMetrics>(head_of("HEAD", "/metrics?x=1"));
  const auto list = action_of<ListJobs>(head_of("GET", "/jobs?state=done&limit=7&before=90"));
  CHECK(list.query.state == State::done);
  CHECK(list.query.limit == 7);
  CHECK(list.query.before == 90);
  CHECK(action_of<ListJobs>(head_of("GET", "/jobs")).query.limit == 50);
}

TEST_CASE("the root tells what there is", "[jobs][http]") {
  const auto response = action_of<HttpResponse>(head_of("GET", "/"));
  CHECK(response.status == 200);
  const auto endpoints = otp::json::parse(response.body).at("endpoints");
  for (const char* one : {"POST /jobs", "GET /jobs", "GET /jobs/ID", "DELETE /jobs/ID",
                          "GET /healthz", "GET /metrics"}) {
    CHECK(endpoints.at(one).is_string());
  }
  CHECK(refusal(head_of("POST", "/")) == 405);
}

TEST_CASE("R-032 odd targets are refused as fits", "[jobs][http]") {
  CHECK(routed(head_of("HEAD", "/unknown")) == 404);
  CHECK(routed(head_of("GET", "/jobs/")) == 404);
  CHECK(routed(head_of("GET", "/jobs//x")) == 404);
  CHECK(routed(head_of("GET", "/jobs/%2e%2e/x")) == 404);
  CHECK(routed(head_of("GET", "/jobs/a%00b")) == 400);
  CHECK(routed(head_of("GET", "/jobs/%zz")) == 400);
  CHECK(routed(head_of("GET", "/jobs/%4")) == 400);
  CHECK(routed(head_of("GET", "/jobs/1#x")) == 400);
  CHECK(routed(head_of("GET", "jobs")) == 400);
  CHECK(routed(head_of("GET", "")) == 400);
  CHECK(routed(head_of("GET", "http:///jobs")) == 400);
  for (const char* id : {"0", "-1", "01", "+1", "1x", "99999999999999999999", "abc"}) {
    CHECK(routed(head_of("GET", std::string("/jobs/") + id)) == 404);
    CHECK(routed(head_of("DELETE", std::string("/jobs/") + id)) == 404);
  }
}

TEST_CASE("R-032 bad queries are refused with the reason", "[jobs][http]") {
  for (const char* query :
       {"limit=-1", "limit=99999999999", "limit=", "limit=0", "limit=1001", "limit=1e2", "limit",
        "limit=%31%", "state=nope", "state=", "state=Done", "before=0", "before=x", "stat=done",
        "limit=1&limit=2", "limit=5%00"}) {
    INFO(query);
    CHECK(routed(head_of("GET", std::string("/jobs?") + query)) == 400);
  }
  CHECK(routed(head_of("GET", "/jobs?")) == 0);
  CHECK(routed(head_of("GET", "/jobs?limit=1000&")) == 0);
  CHECK(routed(head_of("GET", "http://h?limit=x")) == 200);  // the root has no limit
}

TEST_CASE("R-032 other methods get 405 and what is allowed", "[jobs][http]") {
  for (const char* method : {"OPTIONS", "TRACE", "BREW", "PUT", "PATCH", "DELETE", "get"}) {
    const auto refused = make_api().check_head(head_of(method, "/jobs"));
    REQUIRE(refused);
    CHECK(refused->status == 405);
    CHECK(header(*refused, "Allow") == "GET, HEAD, POST");
  }
  CHECK(header(*make_api().check_head(head_of("POST", "/jobs/1")), "Allow") == "GET, HEAD, DELETE");
  CHECK(header(*make_api().check_head(head_of("DELETE", "/healthz")), "Allow") == "GET, HEAD");
  CHECK(refusal(head_of("OPTIONS", "*")) == 405);
  CHECK(refusal(head_of("GET", "*")) == 400);
  CHECK(refusal(head_of("POST", "/nothing")) == 404);
}

TEST_CASE("R-032 HTTP/1.1 needs exactly one Host, HTTP/1.0 none", "[jobs][http]") {
  HttpHead head = head_of("GET", "/healthz");
  head.headers.clear();
  CHECK(refusal(head) == 400);
  head.minor_version = 0;
  CHECK(refusal(head) == 0);
  CHECK(refusal(head_of("GET", "/healthz", {{"host", "b"}})) == 400);
}

TEST_CASE("a body has one length and it is not too long", "[jobs][http]") {
  CHECK(refusal(head_of("POST", "/jobs", {{"Content-Length", "10240"}})) == 0);
  CHECK(refusal(head_of("POST", "/jobs", {{"Content-Length", "10241"}})) == 413);
  CHECK(refusal(head_of("POST", "/jobs", {{"Content-Length", "99999999999999999999"}})) == 413);
  CHECK(refusal(head_of("POST", "/jobs", {{"Content-Length", "-1"}})) == 400);
  CHECK(refusal(head_of("POST", "/jobs", {{"Content-Length", ""}})) == 400);
  CHECK(refusal(head_of("POST", "/jobs", {{"Content-Length", "1"}, {"content-length", "1"}})) ==
        400);
  CHECK(refusal(head_of("POST", "/jobs",
                        {{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}})) == 400);
  CHECK(refusal(head_of("POST", "/jobs", {{"Transfer-Encoding", "Chunked"}})) == 0);
  CHECK(refusal(head_of("POST", "/jobs", {{"Transfer-Encoding", "gzip, chunked"}})) == 400);
  CHECK(routed(head_of("POST", "/jobs"), std::string(20'000, ' ')) == 413);
}

TEST_CASE("what follows a refusal with an unread body cannot be read", "[jobs][http]") {
  const HttpApi api = make_api();
  CHECK(api.check_head(head_of("POST", "/no", {{"Content-Length", "5"}}))->close);
  CHECK(api.check_head(head_of("POST", "/no", {{"Transfer-Encoding", "chunked"}}))->close);
  CHECK(!api.check_head(head_of("POST", "/no"))->close);
  CHECK(!api.check_head(head_of("GET", "/no", {{"Content-Length", "0"}}))->close);
}

TEST_CASE("R-028 expectations are answered before the body comes", "[jobs][http]") {
  const HttpHeaders expects = {{"Expect", "100-Continue"}, {"Content-Length", "20"}};
  const HttpHead good = head_of("POST", "/jobs", expects);
  CHECK(refusal(good) == 0);
  CHECK(HttpApi::wants_continue(good));
  CHECK(refusal(head_of("POST", "/jobs",
                        {{"Expect", "100-continue"}, {"Content-Length", "999999"}})) == 413);
  CHECK(refusal(make_api("t"), good) == 401);
  CHECK(refusal(head_of("POST", "/nope", expects)) == 404);
  CHECK(refusal(head_of("POST", "/jobs", {{"Expect", "200-maybe"}})) == 417);
  HttpHead old = good;
  old.minor_version = 0;
  CHECK(refusal(old) == 0);
  CHECK(!HttpApi::wants_continue(old));
  CHECK(routed(good, R"({"kind":"unknown"})") == 404);
}

TEST_CASE("with a token every write needs it and no read does", "[jobs][http]") {
  const HttpApi api = make_api("s3cret");
  const auto with = [&](const std::string& value) {
    return refusal(api, head_of("DELETE", "/jobs/1", {{"authorization", value}}));
  };
  CHECK(refusal(api, head_of("POST", "/jobs")) == 401);
  CHECK(refusal(api, head_of("DELETE", "/jobs/1")) == 401);
  CHECK(refusal(api, head_of("GET", "/jobs/1")) == 0);
  CHECK(refusal(api, head_of("GET", "/metrics")) == 0);
  CHECK(with("Bearer s3cret") == 0);
  CHECK(with("bearer  s3cret") == 0);
  for (const char* wrong : {"Bearer s3cre", "Bearer s3crets", "Bearer", "Bearer ", "s3cret",
                            "Basic s3cret", "Bearer S3cret", ""}) {
    CHECK(with(wrong) == 401);
  }
  CHECK(refusal(api, head_of("POST", "/jobs",
                             {{"Authorization", "Bearer s3cret"},
                              {"Authorization", "Bearer s3cret"}})) == 401);
  const auto refused = api.check_head(head_of("POST", "/jobs"));
  CHECK(header(*refused, "WWW-Authenticate").starts_with("Bearer"));
}

TEST_CASE("a submission is refused with the status that fits", "[jobs][http]") {
  CHECK(routed(head_of("POST", "/jobs"), "") == 400);
  CHECK(routed(head_of("POST", "/jobs"), "{") == 400);
  CHECK(routed(head_of("POST", "/jobs"), R"({"kind":"rm -rf"})") == 404);
  CHECK(routed(head_of("POST", "/jobs"), R"({"kind":"fail","input":"0123456789"})") == 0);
  CHECK(routed(head_of("POST", "/jobs"), R"({"kind":"fail","input":"0123456789x"})") == 413);
}

TEST_CASE("keep-alive follows version and header", "[jobs][http]") {
  CHECK(HttpApi::keeps_alive(head_of("GET", "/")));
  CHECK(!HttpApi::keeps_alive(head_of("GET", "/", {{"Connection", "Close"}})));
  CHECK(!HttpApi::keeps_alive(head_of("GET", "/", {{"Connection", "te, close"}})));
  HttpHead old = head_of("GET", "/");
  old.minor_version = 0;
  CHECK(!HttpApi::keeps_alive(old));
  old.headers.emplace_back("Connection", "keep-alive");
  CHECK(HttpApi::keeps_alive(old));
}

TEST_CASE("outcomes become responses", "[jobs][http]") {
  const Job job{.id = 5, .kind = "sha256", .state = State::queued};
  const HttpResponse submitted = HttpApi::submitted(job);
  CHECK(submitted.status == 202);
  CHECK(header(submitted, "Location") == "/jobs/5");
  CHECK(otp::json::parse(submitted.body).at("id").as_string() == "5");
  CHECK(HttpApi::shown(job, 5).status == 200);
  CHECK(HttpApi::shown({}, 5).status == 404);
  const HttpResponse full = HttpApi::refused(
      {.why = Limiter::Refusal::queue_full, .retry_after = std::chrono::seconds(8)}, "k");
  CHECK(full.status == 429);
  CHECK(header(full, "Retry-After") == "8");
  CHECK(HttpApi::refused({}, "k").status == 404);
  CHECK(HttpApi::stopped({.applied = true, .job = job}, 5).status == 200);
  CHECK(HttpApi::stopped({.job = Job{.id = 5, .kind = "k", .state = State::cancelled}}, 5).status ==
        200);
  CHECK(HttpApi::stopped({.job = Job{.id = 5, .kind = "k", .state = State::done}}, 5).status ==
        409);
  CHECK(HttpApi::stopped({}, 5).status == 404);
  CHECK(HttpApi::health(true).status == 200);
  CHECK(HttpApi::health(false).status == 503);
  const HttpResponse busy = HttpApi::unavailable("busy", std::chrono::seconds(1));
  CHECK(busy.status == 503);
  CHECK(header(busy, "Retry-After") == "1");
}

TEST_CASE("listen addresses are numeric, and loopback ones are known", "[jobs][http]") {
  const auto loopback = [](const char* text) {
    const auto address = otp::io::Address::parse(text);
    REQUIRE(address);
    CHECK(otp::io::Address::parse(address->to_string())->host == address->host);
    return is_loopback(*address);
  };
  CHECK(loopback("127.0.0.1:0"));
  CHECK(loopback("127.9.9.9:65535"));
  CHECK(loopback("[::1]:8080"));
  CHECK(loopback("[::ffff:127.0.0.1]:1"));
  CHECK(loopback("localhost:80"));
  CHECK(!loopback("0.0.0.0:80"));
  CHECK(!loopback("[::]:80"));
  CHECK(!loopback("10.0.0.1:80"));
  CHECK(!loopback("[::ffff:10.0.0.1]:1"));
  for (const char* bad :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80", "host:80",
        "[127.0.0.1]:80", ":80", "127.0.0.1:8x", "127.1:80"}) {
    CHECK(!otp::io::Address::parse(bad));
  }
}

TEST_CASE("metrics show each kind by state", "[jobs][http]") {
  otp::observe::Metrics metrics;
  JobMetrics shown(metrics, {{"sha256", {}}, {"fail", {}}});
  Counts counts;
  counts["sha256"][static_cast<size_t>(State::done)] = 3;
  counts["gone"][static_cast<size_t>(State::done)] = 9;
  shown.show_stored(counts);
  shown.kind("sha256").submitted.add();
  shown.kind("fail").ended[static_cast<size_t>(State::failed)]->add();
  shown.http_response(202).add();
  const std::string text = metrics.prometheus_text();
  const auto has = [&](const std::string& line) {
    INFO(line);
    CHECK(("\n" + text).find("\n" + line + "\n") != std::string::npos);
  };
  has("jobs_stored{kind=\"sha256\",state=\"done\"} 3");
  has("jobs_stored{kind=\"fail\",state=\"done\"} 0");
  has("jobs_submitted_total{kind=\"sha256\"} 1");
  has("jobs_ended_total{kind=\"fail\",state=\"failed\"} 1");
  has("jobs_http_responses_total{status=\"202\"} 1");
  CHECK(text.find("gone") == std::string::npos);
  shown.show_stored({});
  CHECK(metrics.prometheus_text().find("state=\"done\"} 3") == std::string::npos);
}

}  // namespace jobs
