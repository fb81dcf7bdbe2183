// The main of every test binary: Catch2's own, compiled once, plus what Bazel expects of a test.
//
// `bazel test --test_filter=PATTERN` picks test cases by Catch2's pattern. The results go to
// $XML_OUTPUT_FILE in JUnit's form, one <testcase> per TEST_CASE, so that ./test can count them.
// The file is rewritten before each case with that case marked as failed: after a crash or a
// timeout it names the one that never ended.

// Tests install signal handlers of their own, and a sanitizer's report says more than Catch2's.
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  int status = session.applyCommandLine(argc, argv);
  if (status != 0) return status;
  const char* filter = std::getenv("TESTBRIDGE_TEST_ONLY");
  if (filter != nullptr) session.configData().testsOrTags.emplace_back(filter);
  return session.run();
}
