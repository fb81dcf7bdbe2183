#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "apps/jobs/database.h"
#include "apps/jobs/job.h"

namespace jobs {

/// A job as the API shows it. Always valid JSON and valid UTF-8, whatever the command wrote: bytes
/// that are no text become U+FFFD, and `output_truncated` / `error_truncated` tell a cut.
std::string job_json(const Job& job);

/// {"jobs": [...], "next": "41"}: `next` is what to give as `before` for the next page, or null.
std::string list_json(const JobList& list);

/// {"error": "..."}
std::string error_json(std::string_view reason);

/// What a client submits.
struct Submission {
  std::string kind;
  std::string input;
};

/// Reads {"kind": "sha256", "input": "hello"}.
///
/// Strict: JSON as RFC 8259 has it, in valid UTF-8, these two keys and no other, none twice.
/// `input` is a text, or a number, which stands for itself as it is written; without it the input
/// is empty.
///
/// Returns: the submission, or the reason to tell the client.
std::variant<Submission, std::string> parse_submission(std::string_view body);

}  // namespace jobs
