#include "apps/jobs/job_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <optional>

#include "apps/jobs/text.h"
#include "otp/base/enum_names.h"
#include "otp/base/json.h"
#include "otp/base/utf8.h"

namespace jobs {
namespace {

namespace json = otp::json;

json::value time_value(const Job& job, std::optional<Moment> at) {
  if (!at) return nullptr;
  return json::value(utc_text(*at + job.wall_offset));
}

json::object object_of(const Job& job) {
  json::object object;
  object["id"] = std::to_string(job.id);
  object["kind"] = valid_utf8(job.kind);
  object["state"] = otp::enum_name(job.state);
  object["attempts"] = job.attempts;
  object["exit_status"] = job.exit_status ? json::value(*job.exit_status) : json::value(nullptr);
  object["output"] = valid_utf8(job.output);
  object["output_truncated"] = job.output_truncated;
  object["error"] = valid_utf8(job.error);
  object["error_truncated"] = job.error_truncated;
  object["enqueued_at"] = time_value(job, job.enqueued_at);
  object["started_at"] = time_value(job, job.started_at);
  object["finished_at"] = time_value(job, job.finished_at);
  return object;
}

/// Takes the parser's events one by one, so that nothing is built that is not wanted and a key that
/// comes twice is seen (a finished object would hold only one of them).
class SubmissionHandler {
 public:
  static constexpr std::size_t max_object_size = 1000;
  static constexpr std::size_t max_array_size = 1;
  static constexpr std::size_t max_key_size = 1000;
  static constexpr std::size_t max_string_size = std::size_t{1} << 30;

  using Error = boost::system::error_code;

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error& error) {
    if (depth_++ == 0) return true;
    return refuse(error, bad_value("an object"));
  }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error& error) { return refuse(error, bad_value("an array")); }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(std::string_view part, std::size_t, Error&) {
    key_ += part;
    return true;
  }
  bool on_key(std::string_view part, std::size_t, Error& error) {
    key_ += part;
    text_.clear();
    if (key_ != "kind" && key_ != "input") {
      return refuse(error, "unknown key \"" + key_ + "\": expected \"kind\" and \"input\"");
    }
    std::optional<std::string>& place = key_ == "kind" ? kind : input;
    if (place) return refuse(error, "the key \"" + key_ + "\" is there twice");
    place.emplace();
    return true;
  }
  bool on_string_part(std::string_view part, std::size_t, Error&) {
    text_ += part;
    return true;
  }
  bool on_string(std::string_view part, std::size_t, Error& error) {
    text_ += part;
    if (depth_ == 0) return refuse(error, bad_value("a text"));
    return take();
  }
  bool on_number_part(std::string_view part, Error&) {
    text_ += part;
    return true;
  }
  bool on_int64(std::int64_t, std::string_view part, Error& error) { return number(part, error); }
  bool on_uint64(std::uint64_t, std::string_view part, Error& error) { return number(part, error); }
  bool on_double(double, std::string_view part, Error& error) { return number(part, error); }
  bool on_bool(bool, Error& error) { return refuse(error, bad_value("true or false")); }
  bool on_null(Error& error) { return refuse(error, bad_value("null")); }
  bool on_comment_part(std::string_view, Error&) { return true; }
  bool on_comment(std::string_view, Error&) { return true; }

  std::optional<std::string> kind;
  std::optional<std::string> input;
  std::string reason;  // of a refusal

 private:
  bool refuse(Error& error, std::string why) {
    reason = std::move(why);
    error = json::error::syntax;
    return false;
  }
  std::string bad_value(const std::string& found) const {
    if (depth_ == 0) return "expected an object with \"kind\" and \"input\", got " + found;
    return "\"" + key_ + "\": expected a text" + (key_ == "input" ? " or a number" : "") +
           ", got " + found;
  }
  bool number(std::string_view part, Error& error) {
    text_ += part;
    if (depth_ == 0 || key_ != "input") return refuse(error, bad_value("a number"));
    return take();
  }
  bool take() {
    (key_ == "kind" ? kind : input) = std::move(text_);
    text_.clear();
    key_.clear();
    return true;
  }

  int depth_ = 0;
  std::string key_;
  std::string text_;
};

}  // namespace

std::string job_json(const Job& job) { return json::serialize(object_of(job)); }

std::string list_json(const JobList& list) {
  json::array jobs;
  jobs.reserve(list.jobs.size());
  for (const Job& job : list.jobs) jobs.emplace_back(object_of(job));
  json::object object;
  object["jobs"] = std::move(jobs);
  const bool more = list.more && !list.jobs.empty();
  object["next"] = more ? json::value(std::to_string(list.jobs.back().id)) : json::value(nullptr);
  return json::serialize(object);
}

std::string error_json(std::string_view reason) {
  return json::serialize(json::object{{"error", valid_utf8(reason)}});
}

std::variant<Submission, std::string> parse_submission(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return "the body is empty: expected {\"kind\": ..., \"input\": ...}";
  }
  json::basic_parser<SubmissionHandler> parser(json::parse_options{});
  boost::system::error_code error;
  const std::size_t used = parser.write_some(false, body.data(), body.size(), error);
  const SubmissionHandler& handler = parser.handler();
  if (!handler.reason.empty()) return handler.reason;
  if (!error && body.find_first_not_of(" \t\r\n", used) != std::string_view::npos) {
    error = json::error::extra_data;
  }
  if (error) {
    const bool text_is_bad = !otp::is_valid_utf8(body);
    return "not valid JSON at byte " + std::to_string(used + 1) + ": " +
           (text_is_bad ? "the body is not UTF-8" : error.message());
  }
  if (!handler.kind) return "the key \"kind\" is missing";
  return Submission{.kind = *handler.kind, .input = handler.input.value_or("")};
}

}  // namespace jobs
