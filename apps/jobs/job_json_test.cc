#include "apps/jobs/job_json.h"

#include <catch2/catch.hpp>

#include "otp/base/json.h"
#include "otp/base/utf8.h"

namespace jobs {
namespace {

Submission accepted(std::string_view body) {
  const auto result = parse_submission(body);
  if (const auto* reason = std::get_if<std::string>(&result)) FAIL(*reason);
  return std::get<Submission>(result);
}

std::string refused(std::string_view body) {
  const auto result = parse_submission(body);
  REQUIRE(std::holds_alternative<std::string>(result));
  return std::get<std::string>(result);
}

}  // namespace

TEST_CASE("a submission is a kind and an input", "[jobs][json]") {
  const Submission submission = accepted(R"({"kind": "sha256", "input": "hello"})");
  CHECK(submission.kind == "sha256");
  CHECK(submission.input == "hello");
  CHECK(accepted(R"( {"input":"a\"\\\/\n\té\ud83d\ude00","kind":"k"} )").input ==
        "a\"\\/\n\t\xc3\xa9\xf0\x9f\x98\x80");
  CHECK(accepted(R"({"kind":"fail"})").input.empty());
  CHECK(accepted(R"({"kind":"sleep","input":0.5})").input == "0.5");
  CHECK(accepted(R"({"kind":"sleep","input":1e3})").input == "1e3");
  CHECK(accepted(R"({"kind":"sleep","input":123456789012345678901234567890})").input ==
        "123456789012345678901234567890");
}

TEST_CASE("R-033 odd but right texts are taken, wrong ones are refused with the reason",
          "[jobs][json]") {
  CHECK(accepted(R"({"kind":"k","input":"\u0000"})").input == std::string(1, '\0'));
  CHECK(accepted(R"({"kind":"k","input":"\u2028"})").input == "\xe2\x80\xa8");
  refused(R"({"kind":"k","input":"\ud800"})");
  refused(R"({"kind":"k","input":"\ud800x"})");
  refused(R"({"kind":"k","input":"\udc00"})");
  CHECK(refused("{\"kind\":\"k\",\"input\":\"\xff\"}").find("not UTF-8") != std::string::npos);
  refused("{\"kind\":\"k\",\"input\":\"\xed\xa0\x80\"}");
  refused("{\"kind\":\"k\",\"input\":\"a\nb\"}");  // a raw control character
  std::string controls = "{\"kind\":\"k\",\"input\":\"";
  for (int i = 0; i < 100'000; ++i) controls += "\\u0001";
  CHECK(accepted(controls + "\"}").input == std::string(100'000, '\x01'));
}

TEST_CASE("what is not a submission is refused with the reason", "[jobs][json]") {
  CHECK(refused("") == "the body is empty: expected {\"kind\": ..., \"input\": ...}");
  CHECK(refused(" \n") == refused(""));
  CHECK(refused("{}") == "the key \"kind\" is missing");
  CHECK(refused("[1]") == "expected an object with \"kind\" and \"input\", got an array");
  CHECK(refused("\"x\"") == "expected an object with \"kind\" and \"input\", got a text");
  CHECK(refused("3") == "expected an object with \"kind\" and \"input\", got a number");
  CHECK(refused("null") == "expected an object with \"kind\" and \"input\", got null");
  CHECK(refused(R"({"kind":1})") == "\"kind\": expected a text, got a number");
  CHECK(refused(R"({"kind":"k","input":{}})") ==
        "\"input\": expected a text or a number, got an object");
  CHECK(refused(R"({"kind":"k","input":[[[[]]]]})") ==
        "\"input\": expected a text or a number, got an array");
  CHECK(refused(R"({"kind":"k","input":true})") ==
        "\"input\": expected a text or a number, got true or false");
  CHECK(refused(R"({"kind":"k","command":"rm"})") ==
        "unknown key \"command\": expected \"kind\" and \"input\"");
  CHECK(refused(R"({"kind":"a","kind":"b"})") == "the key \"kind\" is there twice");
  CHECK(refused(R"({"kind":"a"}x)").find("not valid JSON at byte 13") == 0);
  CHECK(refused(R"({"kind":"a")").find("not valid JSON") == 0);
  CHECK(refused("{'kind':'a'}").find("not valid JSON") == 0);
  CHECK(refused(R"({"kind":"a",})").find("not valid JSON") == 0);
  CHECK(refused("\xef\xbb\xbf{\"kind\":\"a\"}").find("not valid JSON") == 0);
  CHECK(refused(R"({"kind":"a"/*c*/})").find("not valid JSON") == 0);
  CHECK(refused("{\"kind\":\"a\"}" + std::string(1, '\0')).find("not valid JSON") == 0);
  CHECK(refused(std::string(200'000, '[')).find("got an array") != std::string::npos);
  CHECK(refused("{\"" + std::string(5000, 'k') + "\":1}").find("not valid JSON") == 0);
}

TEST_CASE("a job shows its fields in the documented form", "[jobs][json]") {
  Job job{.id = 12, .kind = "sha256", .state = State::running, .attempts = 2};
  job.wall_offset = std::chrono::milliseconds(1796046641000);
  job.enqueued_at = Moment(123);
  job.started_at = Moment(1123);
  CHECK(job_json(job) ==
        R"({"id":"12","kind":"sha256","state":"running","attempts":2,"exit_status":null,)"
        R"("output":"","output_truncated":false,"error":"","error_truncated":false,)"
        R"("enqueued_at":"2026-11-30T13:50:41.123Z","started_at":"2026-11-30T13:50:42.123Z",)"
        R"("finished_at":null})");
  job.exit_status = 0;
  CHECK(job_json(job).find(R"("exit_status":0)") != std::string::npos);
}

TEST_CASE("R-033 whatever a command wrote, its job is valid JSON", "[jobs][json]") {
  Job job{.id = 1, .kind = "k", .state = State::failed};
  job.output = std::string("\xff\0\xc3", 3);
  job.error = "caf\xe9 \"quoted\" \\ \x1b[0m";
  JobList list{.jobs = {job, Job{.id = 2, .kind = "other", .output = "fine"}}, .more = true};
  const std::string text = list_json(list);
  CHECK(otp::is_valid_utf8(text));
  const auto parsed = otp::json::parse(text).as_object();
  const auto& jobs = parsed.at("jobs").as_array();
  CHECK(jobs[0].at("output").as_string() == std::string_view("\xef\xbf\xbd\0\xef\xbf\xbd", 7));
  CHECK(jobs[0].at("error").as_string() == "caf\xef\xbf\xbd \"quoted\" \\ \x1b[0m");
  CHECK(jobs[1].at("output").as_string() == "fine");
  CHECK(parsed.at("next").as_string() == "2");
  list.more = false;
  CHECK(otp::json::parse(list_json(list)).at("next").is_null());
  CHECK(list_json({}) == R"({"jobs":[],"next":null})");
  CHECK(error_json("bad \"\xff\"") == "{\"error\":\"bad \\\"\xef\xbf\xbd\\\"\"}");
}

}  // namespace jobs
