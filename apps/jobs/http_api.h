#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/database.h"
#include "apps/jobs/job_json.h"
#include "apps/jobs/limiter.h"
#include "otp/base/secret.h"

namespace jobs {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The first part of a request: what is known before its body has been read.
struct HttpHead {
  std::string method;
  std::string target;
  int minor_version = 1;  ///< of HTTP/1.x
  HttpHeaders headers = {};

  /// The header's value; nothing if it is not there. Names are compared without regard to case.
  std::optional<std::string_view> find(std::string_view name) const;
  size_t count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  HttpHeaders headers = {};  ///< beside Content-Type, Content-Length, Date and Connection
  std::string content_type = "application/json";
  bool close = false;  ///< the connection cannot be used after it (the body was not read)
};

// ---- What a good request asks for.
struct SubmitJob {
  Submission submission;
};
struct ShowJob {
  JobId id = 0;
};
struct ListJobs {
  ListQuery query;
};
struct StopJob {
  JobId id = 0;
};
struct ShowHealth {};
struct ShowMetrics {};
/// A response: the request was refused, or nobody need be asked.
using HttpAction =
    std::variant<HttpResponse, SubmitJob, ShowJob, ListJobs, StopJob, ShowHealth, ShowMetrics>;

/// The HTTP interface without sockets and processes: from a request to what it asks for, and from
/// the outcome to the response.
///
///     if (auto refused = api.check_head(head)) return *refused;   // before the body is read
///     if (api.wants_continue(head)) ... 100 Continue ...
///     HttpAction action = api.route(head, body);
///     if (auto* submit = std::get_if<SubmitJob>(&action)) ... api.submitted(job) ...
///
/// | request | answers | | --- | --- | | POST /jobs | 202 and the job, Location; 400 404 413 429
/// 503 | | GET /jobs?state=S&limit=N&before=ID | 200, newest first; 400 | | GET /jobs/ID | 200; 404
/// | | DELETE /jobs/ID | 200 and the job, cancelled; 404; 409 when it had ended | | GET /healthz,
/// /metrics | 200 (health 503 when the database cannot be written) | | GET / | 200: this list |
///
/// HEAD goes where GET goes. Every refusal is {"error": reason}. With a token POST and DELETE need
/// `Authorization: Bearer TOKEN`.
///
/// Threads: any; it holds no state.
class HttpApi {
 public:
  struct Settings {
    Kinds kinds = {};
    otp::Secret token = {};  ///< empty: none is asked for
    int list_max = 1000;
    int list_default = 50;
  };
  explicit HttpApi(Settings settings);

  /// The longest body that is read: the largest input of a kind, each byte escaped, and the rest.
  size_t body_bytes_max() const { return body_bytes_max_; }

  /// What can be refused before the body is there: a wrong target, method, token, expectation or
  /// length.
  std::optional<HttpResponse> check_head(const HttpHead& head) const;
  /// The client waits for `100 Continue` before it sends the body.
  static bool wants_continue(const HttpHead& head);
  /// REQUIRES: check_head() found nothing.
  HttpAction route(const HttpHead& head, std::string_view body) const;

  /// The client may send another request on this connection.
  static bool keeps_alive(const HttpHead& head);

  // Outcomes.
  static HttpResponse submitted(const Job& job);
  static HttpResponse refused(const Limiter::Refused& refused, const std::string& kind);
  static HttpResponse shown(const std::optional<Job>& job, JobId id);
  static HttpResponse listed(const JobList& list);
  /// Takes: result: of CancelJob.
  static HttpResponse stopped(const OperationResult& result, JobId id);
  static HttpResponse health(bool writes_work);
  static HttpResponse metrics(std::string text);
  /// The database could not do it now: 503, never a lost or half accepted job.
  static HttpResponse unavailable(std::string_view reason, std::chrono::seconds retry_after);

  /// A refusal with its reason; for what the parser of the bytes finds: 400, 408, 413, 431, 505.
  static HttpResponse error(int status, std::string_view reason);

 private:
  std::optional<HttpResponse> check_token(const HttpHead& head) const;
  HttpAction submit(std::string_view body) const;
  HttpAction list(std::string_view query) const;

  Settings settings_;
  size_t body_bytes_max_ = 0;
};

}  // namespace jobs
