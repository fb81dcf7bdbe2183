#include "apps/jobs/http_api.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "apps/jobs/http_target.h"
#include "otp/base/enum_names.h"

namespace jobs {
namespace {

enum class Resource { root, jobs, job, health, metrics };

constexpr std::string_view kEndpoints =
    R"({"service":"jobs","endpoints":{)"
    R"("POST /jobs":"accepts a job: {\"kind\": \"sha256\", \"input\": \"hello\"}",)"
    R"("GET /jobs":"lists jobs, the newest first: ?state=S&limit=N&before=ID",)"
    R"("GET /jobs/ID":"shows a job",)"
    R"("DELETE /jobs/ID":"cancels it",)"
    R"("GET /healthz":"whether jobs can be stored",)"
    R"("GET /metrics":"numbers for Prometheus"}})";

struct Place {
  Resource resource = Resource::jobs;
  JobId id = 0;
};

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// The number if `text` is nothing but a decimal one.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<JobId> job_id(std::string_view text) {
  const auto id = whole_number<JobId>(text);
  if (!id || *id <= 0 || text.front() == '0') return std::nullopt;
  return id;
}

/// What the path names; a job that cannot exist has id 0.
std::optional<Place> find_place(const HttpTarget& target) {
  const auto& segments = target.segments;
  if (segments.empty()) return Place{.resource = Resource::root};
  if (segments.size() == 1 && segments[0] == "healthz") return Place{.resource = Resource::health};
  if (segments.size() == 1 && segments[0] == "metrics") return Place{.resource = Resource::metrics};
  if (segments.size() == 1 && segments[0] == "jobs") return Place{.resource = Resource::jobs};
  if (segments.size() == 2 && segments[0] == "jobs") {
    return Place{.resource = Resource::job, .id = job_id(segments[1]).value_or(0)};
  }
  return std::nullopt;
}

std::string_view allowed_methods(Resource resource) {
  switch (resource) {
    case Resource::jobs: return "GET, HEAD, POST";
    case Resource::job: return "GET, HEAD, DELETE";
    case Resource::root:
    case Resource::health:
    case Resource::metrics: return "GET, HEAD";
  }
  return {};
}

bool is_allowed(Resource resource, std::string_view method) {
  if (method == "GET" || method == "HEAD") return true;
  return (resource == Resource::jobs && method == "POST") ||
         (resource == Resource::job && method == "DELETE");
}

HttpResponse no_such_job(const std::string& id) { return HttpApi::error(404, "no job " + id); }

/// True when `list`, a header's value, has `word` among its comma-separated words.
bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    while (!one.empty() && (one.front() == ' ' || one.front() == '\t')) one.remove_prefix(1);
    while (!one.empty() && (one.back() == ' ' || one.back() == '\t')) one.remove_suffix(1);
    if (same_ignoring_case(one, word)) return true;
  }
  return false;
}

/// How the body is framed: two answers to that are how requests are smuggled.
std::optional<HttpResponse> check_length(const HttpHead& head, size_t body_bytes_max) {
  const auto length = head.find("Content-Length");
  const auto coding = head.find("Transfer-Encoding");
  if (head.count("Content-Length") > 1 || (length && coding)) {
    return HttpApi::error(400, "more than one length of the body");
  }
  if (coding && !same_ignoring_case(*coding, "chunked")) {
    return HttpApi::error(400, "a Transfer-Encoding other than chunked");
  }
  if (!length) return std::nullopt;
  const bool digits =
      !length->empty() && std::ranges::all_of(*length, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return HttpApi::error(400, "Content-Length: expected a number");
  const auto number = whole_number<uint64_t>(*length);
  if (!number || *number > body_bytes_max) {
    return HttpApi::error(413, "the body may have " + std::to_string(body_bytes_max) + " bytes");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> HttpHead::find(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

size_t HttpHead::count(std::string_view name) const {
  return static_cast<size_t>(std::ranges::count_if(
      headers, [&](const auto& header) { return same_ignoring_case(header.first, name); }));
}

HttpApi::HttpApi(Settings settings) : settings_(std::move(settings)) {
  constexpr size_t kEscapedByte = 6;  // \u0001
  constexpr size_t kTheRest = 4096;   // keys, kind, spaces
  uint64_t input_max = 0;
  for (const auto& [name, kind] : settings_.kinds)
    input_max = std::max(input_max, kind.max_input.count);
  body_bytes_max_ = kEscapedByte * input_max + kTheRest;
}

std::optional<HttpResponse> HttpApi::check_head(const HttpHead& head) const {
  std::optional<HttpResponse> refusal;
  const auto refuse = [&](HttpResponse response) {
    // A body that may follow is not read, so the next request's beginning is unknown.
    response.close = head.find("Content-Length").value_or("0") != "0" ||
                     head.find("Transfer-Encoding").has_value();
    refusal = std::move(response);
    return refusal;
  };
  const size_t hosts = head.count("Host");
  if (hosts > 1 || (hosts == 0 && head.minor_version >= 1)) {
    return refuse(error(400, "exactly one Host is expected"));
  }
  if (auto bad = check_length(head, body_bytes_max_)) return refuse(*bad);
  const auto target = HttpTarget::parse(head.target);
  if (head.target == "*" || !target) {
    if (head.target != "*" || head.method != "OPTIONS") {
      return refuse(error(400, "the target is no path"));
    }
    HttpResponse response = error(405, "OPTIONS is not supported");
    response.headers.emplace_back("Allow", "GET, HEAD, POST, DELETE");
    return refuse(std::move(response));
  }
  const auto place = find_place(*target);
  if (!place) return refuse(error(404, "no such resource"));
  if (!is_allowed(place->resource, head.method)) {
    HttpResponse response = error(405, head.method + " is not supported here");
    response.headers.emplace_back("Allow", allowed_methods(place->resource));
    return refuse(std::move(response));
  }
  if (auto bad = check_token(head)) return refuse(*bad);
  const auto expectation = head.find("Expect");
  if (head.minor_version >= 1 && expectation && !same_ignoring_case(*expectation, "100-continue")) {
    return refuse(error(417, "Expect: only 100-continue is supported"));
  }
  if (place->resource == Resource::job && place->id == 0) {
    return refuse(no_such_job(target->segments[1]));
  }
  return std::nullopt;
}

std::optional<HttpResponse> HttpApi::check_token(const HttpHead& head) const {
  const bool writes = head.method == "POST" || head.method == "DELETE";
  if (!writes || settings_.token.empty()) return std::nullopt;
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view given = head.find("Authorization").value_or("");
  const bool bearer = same_ignoring_case(given.substr(0, kScheme.size()), kScheme);
  given.remove_prefix(bearer ? kScheme.size() : given.size());
  while (!given.empty() && given.front() == ' ') given.remove_prefix(1);
  if (bearer && head.count("Authorization") == 1 && settings_.token.matches(std::string(given))) {
    return std::nullopt;
  }
  HttpResponse response = error(401, "a bearer token is needed to change anything");
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"jobs\"");
  return response;
}

bool HttpApi::wants_continue(const HttpHead& head) {
  return head.minor_version >= 1 &&
         same_ignoring_case(head.find("Expect").value_or(""), "100-continue");
}

bool HttpApi::keeps_alive(const HttpHead& head) {
  const std::string_view connection = head.find("Connection").value_or("");
  if (has_word(connection, "close")) return false;
  return head.minor_version >= 1 || has_word(connection, "keep-alive");
}

HttpAction HttpApi::route(const HttpHead& head, std::string_view body) const {
  const auto target = HttpTarget::parse(head.target);
  const auto place = target ? find_place(*target) : std::nullopt;
  if (!place) return error(404, "no such resource");
  switch (place->resource) {
    case Resource::root: return HttpResponse{.body = std::string(kEndpoints)};
    case Resource::health: return ShowHealth{};
    case Resource::metrics: return ShowMetrics{};
    case Resource::jobs: break;
    case Resource::job:
      if (head.method == "DELETE") return StopJob{.id = place->id};
      return ShowJob{.id = place->id};
  }
  return head.method == "POST" ? submit(body) : list(target->query);
}

HttpAction HttpApi::submit(std::string_view body) const {
  if (body.size() > body_bytes_max_) {
    return error(413, "the body may have " + std::to_string(body_bytes_max_) + " bytes");
  }
  auto parsed = parse_submission(body);
  if (const auto* reason = std::get_if<std::string>(&parsed)) return error(400, *reason);
  auto& submission = std::get<Submission>(parsed);
  const auto kind = settings_.kinds.find(submission.kind);
  if (kind == settings_.kinds.end()) {
    return error(404, "unknown kind \"" + submission.kind.substr(0, 100) + "\"");
  }
  const uint64_t most = kind->second.max_input.count;
  if (submission.input.size() > most) {
    return error(413,
                 "an input of " + submission.kind + " may have " + std::to_string(most) + " bytes");
  }
  return SubmitJob{.submission = std::move(submission)};
}

HttpAction HttpApi::list(std::string_view query) const {
  const auto parameters = parse_query(query);
  if (!parameters) return error(400, "the query has a broken %-escape");
  ListJobs list{.query = {.limit = settings_.list_default}};
  std::map<std::string, bool> seen;
  for (const auto& [name, value] : *parameters) {
    if (seen[name]) return error(400, name + " is there twice");
    seen[name] = true;
    if (name == "state") {
      std::string words;
      for (const auto& named : otp::enum_names<State>) {
        if (named.name == value) list.query.state = named.value;
        words += (words.empty() ? "" : ", ") + std::string(named.name);
      }
      if (!list.query.state) return error(400, "state: expected one of " + words);
    } else if (name == "limit") {
      const auto limit = whole_number<int>(value);
      if (!limit || *limit < 1 || *limit > settings_.list_max) {
        return error(400,
                     "limit: expected a number from 1 to " + std::to_string(settings_.list_max));
      }
      list.query.limit = *limit;
    } else if (name == "before") {
      const auto id = job_id(value);
      if (!id) return error(400, "before: expected a job's id");
      list.query.before = *id;
    } else {
      return error(400, "unknown parameter \"" + name + "\": expected state, limit, before");
    }
  }
  return list;
}

HttpResponse HttpApi::error(int status, std::string_view reason) {
  return {.status = status, .body = error_json(reason)};
}

HttpResponse HttpApi::submitted(const Job& job) {
  HttpResponse response{.status = 202, .body = job_json(job)};
  response.headers.emplace_back("Location", "/jobs/" + std::to_string(job.id));
  return response;
}

HttpResponse HttpApi::refused(const Limiter::Refused& refused, const std::string& kind) {
  if (refused.why == Limiter::Refusal::unknown_kind) {
    return error(404, "unknown kind \"" + kind + "\"");
  }
  HttpResponse response = error(429, "the queue of " + kind + " is full");
  response.headers.emplace_back("Retry-After", std::to_string(refused.retry_after.count()));
  return response;
}

HttpResponse HttpApi::shown(const std::optional<Job>& job, JobId id) {
  if (!job) return no_such_job(std::to_string(id));
  return {.body = job_json(*job)};
}

HttpResponse HttpApi::listed(const JobList& list) { return {.body = list_json(list)}; }

HttpResponse HttpApi::stopped(const OperationResult& result, JobId id) {
  if (!result.job) return no_such_job(std::to_string(id));
  // To cancel twice is no conflict: the outcome is the wanted one.
  if (result.applied || result.job->state == State::cancelled)
    return {.body = job_json(*result.job)};
  return error(409, "job " + std::to_string(id) +
                        " has ended already: " + std::string(otp::enum_name(result.job->state)));
}

HttpResponse HttpApi::health(bool writes_work) {
  if (writes_work) return {.body = R"({"status":"ok"})"};
  return {.status = 503, .body = R"({"status":"the database cannot be written"})"};
}

HttpResponse HttpApi::metrics(std::string text) {
  return {.body = std::move(text), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

HttpResponse HttpApi::unavailable(std::string_view reason, std::chrono::seconds retry_after) {
  HttpResponse response = error(503, reason);
  response.headers.emplace_back("Retry-After", std::to_string(retry_after.count()));
  return response;
}

}  // namespace jobs
