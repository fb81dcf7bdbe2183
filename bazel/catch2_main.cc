// The main of every test binary: Catch2's own, compiled once, plus what Bazel expects of a test.
//
// `bazel test --test_filter=PATTERN` picks test cases by Catch2's pattern. The results go to
// $XML_OUTPUT_FILE in JUnit's form, one <testcase> per TEST_CASE, so that ./test can count them.
// The file is rewritten before each case with that case marked as failed: after a crash or a
// timeout it names the one that never ended.
//
// A test case whose name begins with ids of the contract's rows, "SUP-005 a temporary child ...",
// prints a line for each: `ROW SUP-005 pass`, or `ROW SUP-005 FAIL`. Only one that asserted
// something passes. Where a seed failed (replay.h), the command that replays it is printed.

// Tests install signal handlers of their own, and a sanitizer's report says more than Catch2's.
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bazel/replay.h"

namespace {

using otp::testing::Replay;

struct CaseResult {
  std::string name;
  double seconds = 0;
  std::string failure;  // empty: passed
};

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

void write_xml(const std::string& path, const std::vector<CaseResult>& results) {
  size_t failures = 0;
  for (const auto& result : results) failures += result.failure.empty() ? 0 : 1;
  std::ofstream out(path, std::ios::trunc);
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"catch2\""
      << " tests=\"" << results.size() << "\" failures=\"" << failures << "\">\n";
  for (const auto& result : results) {
    out << "<testcase name=\"" << escape(result.name) << "\" time=\"" << result.seconds << "\">";
    if (!result.failure.empty()) out << "<failure message=\"" << escape(result.failure) << "\"/>";
    out << "</testcase>\n";
  }
  out << "</testsuite>\n</testsuites>\n";
}

class BazelXml : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    results_.push_back({.name = info.name, .failure = "did not end"});
    write();
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    results_.back().failure = stats.totals.testCases.failed > 0 ? "failed" : "";
    TestEventListenerBase::testCaseEnded(stats);
  }

  void sectionEnded(const Catch::SectionStats& stats) override {
    results_.back().seconds += stats.durationInSeconds;
    TestEventListenerBase::sectionEnded(stats);
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    write();
    TestEventListenerBase::testRunEnded(stats);
  }

 private:
  void write() {
    const char* path = std::getenv("XML_OUTPUT_FILE");
    if (path != nullptr) write_xml(path, results_);
  }

  std::vector<CaseResult> results_;
};
CATCH_REGISTER_LISTENER(BazelXml)

// "SIG-001": two to four capitals, a hyphen, three digits.
bool is_row(const std::string& word) {
  const size_t hyphen = word.find('-');
  if (hyphen == std::string::npos || hyphen < 2 || hyphen > 4 || word.size() != hyphen + 4) {
    return false;
  }
  for (size_t i = 0; i < word.size(); ++i) {
    const auto c = static_cast<unsigned char>(word[i]);
    if (i < hyphen ? !std::isupper(c) : i > hyphen && !std::isdigit(c)) return false;
  }
  return true;
}

// The ids at the front of a test case's name.
std::vector<std::string> rows_of(const std::string& name) {
  std::vector<std::string> rows;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find(' ', at), name.size());
    std::string word = name.substr(at, end - at);
    if (!is_row(word)) break;
    rows.push_back(std::move(word));
    at = end + 1;
  }
  return rows;
}

// A pattern for this name that needs no quoting in a shell or in Catch2.
std::string pattern_of(const std::string& name) {
  size_t end = 0;
  while (end < name.size() && (std::isalnum(static_cast<unsigned char>(name[end])) ||
                               std::string(" .-_").find(name[end]) != std::string::npos)) {
    ++end;
  }
  return end == name.size() ? name : name.substr(0, end) + "*";
}

class Rows : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    Replay::failed = 0;
  }

  bool assertionEnded(const Catch::AssertionStats& stats) override {
    if (!stats.assertionResult.isOk() && Replay::failed == 0) Replay::failed = Replay::current;
    return TestEventListenerBase::assertionEnded(stats);
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const auto& counts = stats.totals.assertions;
    const bool passed = counts.failed == 0 && counts.passed > 0;
    for (const auto& row : rows_of(stats.testInfo.name)) {
      std::printf("ROW %s %s\n", row.c_str(), passed ? "pass" : "FAIL");
    }
    if (!passed && Replay::failed != 0) print_replay(stats.testInfo.name);
    std::fflush(stdout);
    TestEventListenerBase::testCaseEnded(stats);
  }

 private:
  void print_replay(const std::string& name) {
    const std::string pattern = pattern_of(name);
    const auto seed = static_cast<unsigned long long>(Replay::failed);
    std::printf("SEED %llu failed: %s\nTo replay it alone (with the same --config): ", seed,
                name.c_str());
    if (const char* target = std::getenv("TEST_TARGET")) {
      std::printf("bazel test %s --test_env=OTP_SEED=%llu --test_filter=\"%s\"\n", target, seed,
                  pattern.c_str());
    } else {
      std::printf("OTP_SEED=%llu %s \"%s\"\n", seed, program_invocation_name, pattern.c_str());
    }
  }
};
CATCH_REGISTER_LISTENER(Rows)

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  int status = session.applyCommandLine(argc, argv);
  if (status != 0) return status;
  const char* filter = std::getenv("TESTBRIDGE_TEST_ONLY");
  if (filter != nullptr) session.configData().testsOrTags.emplace_back(filter);
  return session.run();
}
