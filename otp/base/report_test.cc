#include "otp/base/report.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "otp/base/format_value.h"
#include "otp/base/utf8.h"

namespace report_test {

struct Message {
  std::string text = {};
  otp::Secret token = {};
};

struct State {
  std::vector<std::string> rows = {};
};

}  // namespace report_test

using namespace report_test;
using otp::BoundedWriter;
using otp::ExitReason;
using otp::LogRecord;
using otp::Pid;

namespace {

constexpr Pid kPid{.node = 0, .id = (uint64_t{1} << 32) | 5};

std::string_view field(const LogRecord& record, std::string_view key) {
  for (const auto& field : record.fields) {
    if (field.key == key) return field.value;
  }
  return "(none)";
}

}  // namespace

TEST_CASE("a server report has name, last message, state and reason", "[report]") {
  const ExitReason reason = ExitReason::tagged("bad_day", "rain");
  const Message message{.text = "hello", .token = otp::Secret("hunter2")};
  otp::ServerReport report{.server = "Ledger", .name = "ledger", .pid = kPid, .reason = &reason};
  report.last_message = [&](BoundedWriter& out) { otp::format_value(out, message); };
  report.state = [](BoundedWriter& out) { otp::format_value(out, State{.rows = {"a"}}); };
  LogRecord record;
  otp::fill_record(record, report);
  CHECK(record.message ==
        "server ledger <0.5.1> terminating\n"
        "last message: Message{text: \"hello\", token: ***}\n"
        "state: State{rows: [\"a\"]}\n"
        "reason: {bad_day,\"rain\"}\n");
  CHECK(field(record, "name") == "ledger");
  CHECK(field(record, "pid") == "<0.5.1>");
  CHECK(field(record, "reason") == "{bad_day,\"rain\"}");
}

TEST_CASE("a crash report has ancestors and exit reason", "[report]") {
  const ExitReason reason = ExitReason::timeout();
  const otp::StackTrace stack = otp::StackTrace::capture();
  otp::CrashReport report{.initial_call = "Ledger",
                          .name = {},
                          .pid = kPid,
                          .reason = &reason,
                          .stack = &stack,
                          .ancestors = {"bank_sup", "<0.2.1>"},
                          .links = {kPid},
                          .mailbox_letters = 2,
                          .letter = [](BoundedWriter& out, uint64_t index) { out.number(index); }};
  LogRecord record;
  otp::fill_record(record, report);
  CHECK_THAT(record.message, Catch::StartsWith("crash report: Ledger <0.5.1>\n"
                                               "initial call: Ledger\n"
                                               "exit reason: timeout\nthrown at\n  #0 "));
  CHECK_THAT(record.message, Catch::EndsWith("ancestors: [bank_sup,<0.2.1>]\n"
                                             "links: [<0.5.1>]\n"
                                             "trap_exit: false\n"
                                             "message_queue_len: 2\n"
                                             "messages: [0,\n  1]\n"));
}

TEST_CASE("R-027 a report stays under its cap whatever it reports on", "[report]") {
  const std::string huge(50'000'000, 'x');
  const State state{.rows = std::vector<std::string>(100'000, std::string(2'000, 'y'))};
  const ExitReason reason = ExitReason::tagged("huge", otp::Term(huge));
  int letters = 0;
  otp::ServerReport server{.server = huge, .name = huge, .pid = kPid, .reason = &reason};
  server.client = huge;
  server.last_message = [&](BoundedWriter& out) {
    otp::format_value(out, Message{.text = "secret", .token = otp::Secret("hunter2")});
    otp::format_value(out, std::vector<std::string_view>(1000, huge));
  };
  server.state = [&](BoundedWriter& out) { otp::format_value(out, state); };
  LogRecord first;
  otp::fill_record(first, server);
  CHECK(first.message.size() <= otp::kReportBytesMax);
  CHECK(first.message.find("hunter2") == std::string::npos);

  otp::CrashReport crash{.initial_call = "Ledger", .pid = kPid, .reason = &reason};
  crash.ancestors.assign(1000, huge.substr(0, 1000));
  crash.links.assign(100'000, kPid);
  crash.mailbox_letters = 1'000'000;
  crash.letter = [&](BoundedWriter& out, uint64_t) {
    ++letters;
    out.quoted(huge);
  };
  LogRecord second;
  otp::fill_record(second, crash);
  CHECK(second.message.size() <= otp::kReportBytesMax);
  CHECK_THAT(second.message, Catch::Contains("message_queue_len: 1000000"));
  CHECK(letters <= static_cast<int>(otp::kReportListMax));
  for (const LogRecord* record : {&first, &second}) {
    for (const auto& field : record->fields) CHECK(field.value.size() < 1000);
  }
}

TEST_CASE("R-027 a format_status that throws is mentioned, not fatal", "[report]") {
  const ExitReason reason = ExitReason::timeout();
  otp::ServerReport report{.server = "Ledger", .name = "ledger", .pid = kPid, .reason = &reason};
  report.last_message = [](BoundedWriter& out) {
    out.write("half ");
    throw 42;
  };
  report.state = [](BoundedWriter&) { throw std::runtime_error("cannot say"); };
  LogRecord record;
  otp::fill_record(record, report);
  CHECK(record.message ==
        "server ledger <0.5.1> terminating\n"
        "last message: half (formatting it failed: int: 42)\n"
        "state: (formatting it failed: std::runtime_error: cannot say)\n"
        "reason: timeout\n");
}

TEST_CASE("a supervisor report names the limit, the child's id and pid", "[report]") {
  const ExitReason reason = ExitReason::killed();
  otp::SupervisorReport report{.supervisor = "bank_sup",
                               .context = otp::SupervisorReport::Context::shutdown_error,
                               .reason = &reason,
                               .child_id = "ledger",
                               .child_pid = kPid,
                               .child_start = "Ledger",
                               .restart = "permanent",
                               .shutdown = "5s",
                               .child_kind = "worker"};
  LogRecord record;
  otp::fill_record(record, report);
  CHECK(record.message ==
        "supervisor bank_sup: shutdown_error, child ledger <0.5.1>: killed\n"
        "child: start=Ledger restart=permanent shutdown=5s type=worker\n");
  report.context = otp::SupervisorReport::Context::shutdown;
  LogRecord limit;
  otp::fill_record(limit, report);
  CHECK_THAT(limit.message,
             Catch::StartsWith("supervisor bank_sup: shutdown, child ledger <0.5.1>: "
                               "reached_max_restart_intensity, last reason killed\n"));
  CHECK(field(limit, "reason") == "reached_max_restart_intensity");
}

TEST_CASE("the reason of an exception is readable, its stack stands apart", "[report]") {
  class Stack final : public otp::TermObject {
    std::string to_string() const override { return "[thrown at throw_it()]"; }
    std::string details() const override { return "  #0 throw_it()\n"; }
  };
  const ExitReason reason =
      ExitReason::exception("std::runtime_error", "no money", otp::Term(std::make_shared<Stack>()));
  LogRecord record;
  otp::fill_record(record, otp::ServerReport{.server = "Ledger", .pid = kPid, .reason = &reason});
  CHECK(record.message ==
        "server Ledger <0.5.1> terminating\n"
        "reason: exception std::runtime_error: no money\n"
        "thrown at\n  #0 throw_it()\n");
  CHECK(field(record, "reason") == "exception std::runtime_error: no money");

  // Who was waiting for it ends with that reason as part of his own: it stays one line.
  const ExitReason waiting = ExitReason::tagged("call", reason.term());
  otp::fill_record(record, otp::ServerReport{.server = "Clerk", .pid = kPid, .reason = &waiting});
  CHECK(record.message ==
        "server Clerk <0.5.1> terminating\n"
        "reason: {call,{{std::runtime_error,\"no money\"},[thrown at throw_it()]}}\n");
}

TEST_CASE("a progress report names supervisor and child", "[report]") {
  LogRecord record;
  otp::fill_record(record, otp::ProgressReport{.supervisor = "bank_sup",
                                               .child_id = "ledger",
                                               .child_pid = kPid,
                                               .child_start = "Ledger"});
  CHECK(record.message == "supervisor bank_sup: started ledger <0.5.1>");
}
