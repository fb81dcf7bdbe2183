#include "otp/config/check.h"

#include <catch2/catch.hpp>
#include <string>

#include "otp/config/overrides.h"
#include "otp/config/parser.h"
#include "otp/config/testing/bank.h"

using namespace otp::config;
using namespace std::chrono_literals;

namespace {

/// A file of the bank whose children are the given lines.
std::string with_children(const std::string& children) {
  return "application: bank\nsupervisor:\n  children:\n" + children;
}

const std::string kBank = with_children(
    "    - {id: ledger, start: Ledger, name: main_ledger, args: {currency: EUR}}\n"
    "    - {id: teller, start: Teller, args: {ledger: ledger}}\n"
    "    - id: workers\n"
    "      supervisor:\n"
    "        children:\n"
    "          - {id: audit, start: Audit, args: {rules: [], named: {a: {text: x}}}}\n");

const ChildDecl& child(const CheckResult& result, std::size_t i) {
  REQUIRE(result.ok());
  return result.configuration->supervisor.children.at(i);
}

}  // namespace

TEST_CASE("a child that says the least has OTP's defaults", "[config][check]") {
  const auto result = bank::check(with_children(
      "    - {id: clock, start: Clock}\n    - {id: sub, supervisor: {children: []}}\n"));
  REQUIRE(result.ok());
  const SupervisorDecl& top = result.configuration->supervisor;
  CHECK(top.strategy == otp::Strategy::one_for_one);
  CHECK(top.intensity == 1);
  CHECK(top.period == 5s);
  CHECK(top.auto_shutdown == otp::AutoShutdown::never);
  const ChildDecl& worker = top.children.at(0);
  CHECK(worker.id == "clock");
  CHECK(worker.start == "Clock");
  CHECK(worker.restart == otp::Restart::permanent);
  CHECK(worker.shutdown == otp::Shutdown(5s));
  CHECK_FALSE(worker.significant);
  CHECK_FALSE(worker.name);
  CHECK_FALSE(worker.mailbox);
  CHECK_FALSE(worker.backoff);
  CHECK(worker.args == nullptr);
  CHECK(worker.supervisor == nullptr);
  CHECK(top.children.at(1).shutdown.is_infinity());
  CHECK(top.children.at(1).supervisor != nullptr);
}

TEST_CASE("a tree is read with everything that it says", "[config][check]") {
  const auto result = bank::check(
      "application: bank\n"
      "settings: {listen: \"0.0.0.0:1\", limits: {daily: 3}, hosts: [a, b]}\n"
      "supervisor:\n"
      "  strategy: rest_for_one\n  intensity: 3\n  period: 10s\n  auto_shutdown: any_significant\n"
      "  children:\n"
      "    - id: ledger\n      start: Ledger\n      name: ledger\n"
      "      args: {currency: EUR, opening_cents: -5, rounding: up}\n"
      "      restart: transient\n      shutdown: brutal_kill\n      significant: true\n"
      "      mailbox: {max: 10000, on_full: drop_newest}\n"
      "      backoff: {min: 100ms, max: 10s, factor: 1.5}\n      drop_expired: true\n");
  REQUIRE(result.ok());
  CHECK(result.text().empty());
  const Configuration& bank = *result.configuration;
  CHECK(bank.application == "bank");
  CHECK(bank.settings_as<bank::Settings>().listen == "0.0.0.0:1");
  CHECK(bank.settings_as<bank::Settings>().limits.daily == 3);
  CHECK(bank.settings_as<bank::Settings>().hosts.size() == 2);
  CHECK(bank.supervisor.strategy == otp::Strategy::rest_for_one);
  CHECK(bank.supervisor.intensity == 3);
  CHECK(bank.supervisor.period == 10s);
  CHECK(bank.supervisor.auto_shutdown == otp::AutoShutdown::any_significant);
  const ChildDecl& ledger = child(result, 0);
  CHECK(ledger.name == "ledger");
  CHECK(ledger.args_of<bank::Ledger>().currency.get() == "EUR");
  CHECK(ledger.args_of<bank::Ledger>().opening_cents == -5);
  CHECK(ledger.args_of<bank::Ledger>().rounding == bank::Rounding::up);
  CHECK(ledger.restart == otp::Restart::transient);
  CHECK(ledger.shutdown == otp::Shutdown::brutal_kill);
  CHECK(ledger.significant);
  CHECK(ledger.mailbox == otp::MailboxLimit{10000, otp::OnFull::drop_newest});
  CHECK(ledger.backoff == otp::Backoff{100ms, 10s, 1.5});
  CHECK(ledger.drop_expired);
  CHECK(ledger.position.line == 9);
}

TEST_CASE("references give the name of a child, by its name or its id, forwards too",
          "[config][check]") {
  const auto result = bank::check(with_children(
      "    - {id: one, start: Teller, args: {ledger: main_ledger}}\n"
      "    - {id: two, start: Teller, args: {ledger: ledger, second: main_ledger}}\n"
      "    - {id: sub, supervisor: {children: [{id: ledger, start: Ledger, name: main_ledger, "
      "args: {currency: EUR}}]}}\n"));
  CHECK(child(result, 0).args_of<bank::Teller>().ledger->text() == "main_ledger");
  CHECK(child(result, 1).args_of<bank::Teller>().ledger->text() == "main_ledger");
  CHECK(child(result, 1).args_of<bank::Teller>().second->text() == "main_ledger");
}

TEST_CASE("a reference follows a server type that configurations call otherwise",
          "[config][check]") {
  const ApplicationDecl application{
      .name = "bank",
      .servers = {describe_server<bank::Ledger>("Book"), describe_server<bank::Teller>()}};
  const std::string book = "    - {id: b, start: Book, name: book, args: {currency: EUR}}\n";
  const auto good =
      check(with_children(book + "    - {id: t, start: Teller, args: {ledger: book}}\n"), "f",
            {application}, {});
  CHECK(child(good, 1).args_of<bank::Teller>().ledger->text() == "book");
  CHECK(
      check(with_children(book + "    - {id: t, start: Teller, args: {ledger: look}}\n"), "f",
            {application}, {})
          .text() ==
      "f:5:45: expected the name of a child that runs Book (book), got look; did you mean book?\n");
}

TEST_CASE("an id that several supervisors use does not do as a reference", "[config][check]") {
  CHECK(bank::check(with_children("    - {id: one, start: Teller, args: {ledger: x}}\n"
                                  "    - {id: a, supervisor: {children: [{id: x, start: Ledger, "
                                  "args: {currency: E}}]}}\n"
                                  "    - {id: b, supervisor: {children: [{id: x, start: Ledger, "
                                  "args: {currency: E}}]}}\n"))
            .text() ==
        "bank.yaml:4:47: expected the name of a child that runs Ledger, got x, the id of several: "
        "give one a name\n");
}

TEST_CASE("a significant child must be able to end, and its supervisor to follow",
          "[config][check]") {
  CHECK(bank::check(with_children("    - {id: a, start: Clock, significant: true}\n")).text() ==
        "bank.yaml:4:42: expected false, as the child is permanent, got true\n");
  CHECK(bank::check(
            with_children("    - {id: a, start: Clock, significant: true, restart: transient}\n"))
            .text() ==
        "bank.yaml:4:42: expected false, as the supervisor's auto_shutdown is never, got true\n");
}

TEST_CASE("bad flags of a supervisor are refused", "[config][check]") {
  CHECK(bank::check("application: bank\nsupervisor: {strategy: simple_one_for_one, intensity: -1, "
                    "period: 0s, children: []}\n")
            .text() ==
        "bank.yaml:2:24: expected one_for_one, one_for_all or rest_for_one, got "
        "simple_one_for_one\n"
        "bank.yaml:2:55: expected an integer from 0 to 4294967295, got -1\n");
  CHECK(bank::check("application: bank\nsupervisor: {period: 0s, children: []}\n").text() ==
        "bank.yaml:2:22: expected a duration above 0s, got 0s\n");
}

TEST_CASE("a child is either a server or a supervisor, and says only what fits",
          "[config][check]") {
  CHECK(bank::check(with_children("    - {id: a}\n"
                                  "    - {id: b, start: Clock, supervisor: {children: []}}\n"
                                  "    - {id: c, supervisor: {children: []}, args: {}}\n"
                                  "    - {id: d, start: Clock, args: {a: 1}}\n"
                                  "    - {id: e, start: Clock, args: {}}\n"
                                  "    - {start: Clock}\n"
                                  "    - {id: \"\", start: Clock}\n"
                                  "    - clock\n"
                                  "    - {id: f, supervisor: {}}\n"
                                  "    - {id: g, supervisor: {children: }}\n"))
            .text() ==
        "bank.yaml:4:7: expected the key start (a server) or supervisor of a child, got neither\n"
        "bank.yaml:5:29: expected either start or supervisor, got both\n"
        "bank.yaml:6:43: expected a key of a supervisor child (id, name, restart, shutdown, "
        "significant, backoff or supervisor), got args\n"
        "bank.yaml:7:29: expected no args, as Clock takes none, got a mapping\n"
        "bank.yaml:9:7: expected the key id of a child (a text), got none\n"
        "bank.yaml:10:12: expected an id that is not empty, got \"\"\n"
        "bank.yaml:11:7: expected a child (a mapping), got clock\n"
        "bank.yaml:12:27: expected the key children of a supervisor (a list), got none\n"
        "bank.yaml:13:28: expected a list of children, got nothing; no children is written []\n");
}

TEST_CASE("limits and pauses are checked together", "[config][check]") {
  CHECK(bank::check(with_children(
                        "    - {id: a, start: Clock, mailbox: {max: 0}}\n"
                        "    - {id: b, start: Clock, mailbox: {on_full: exit}}\n"
                        "    - {id: c, start: Clock, backoff: {min: 2s, max: 1s}}\n"
                        "    - {id: d, start: Clock, backoff: {min: 1s, max: 1s, factor: 0.5}}\n"))
            .text() ==
        "bank.yaml:4:44: expected at least 1 message, got 0\n"
        "bank.yaml:5:38: expected the key max (an integer from 0 to 18446744073709551615), got "
        "none\n"
        "bank.yaml:6:53: expected a duration not below min, got 1s\n"
        "bank.yaml:7:65: expected a factor of at least 1, got 0.5\n");
}

TEST_CASE("the file names an application of the program", "[config][check]") {
  CHECK(bank::check("application: bnak\nsupervisor: {children: []}\n").text() ==
        "bank.yaml:1:14: expected an application of this program (bank), got bnak; did you mean "
        "bank?\n");
  CHECK(bank::check("supervisr: {children: []}\n").text() ==
        "bank.yaml:1:1: expected a key of the file (application, run_dir, imports, settings or "
        "supervisor), got supervisr; did you mean supervisor?\n"
        "bank.yaml:1:1: expected the key application of the file (a text), got none\n"
        "bank.yaml:1:1: expected the key supervisor of the file (a mapping), got none\n");
  CHECK(
      check("application: a\nsettings: {}\nsupervisor: {children: []}\n", "f", {{.name = "a"}}, {})
          .text() == "f:2:1: expected no settings, as a has none, got a mapping\n");
}

TEST_CASE("R-009 an aliased child counts as written again", "[config][check]") {
  const auto result =
      bank::check(with_children("    - &base {id: a, start: Ledger, args: {currency: EUR}, "
                                "restart: transient, shutdown: 2s}\n"
                                "    - {<<: *base, id: b}\n"));
  CHECK(child(result, 1).id == "b");
  CHECK(child(result, 1).restart == otp::Restart::transient);
  CHECK(child(result, 1).shutdown == otp::Shutdown(2s));
  CHECK(bank::check(with_children("    - &x {id: a, start: Clock}\n    - *x\n")).text() ==
        "bank.yaml:4:15: expected an id that no other child of this supervisor has, got a again "
        "(first at 4:15)\n");
}

TEST_CASE("R-010 duplicate keys keep a configuration from being used", "[config][check]") {
  CHECK(bank::check("application: bank\nsupervisor: {children: []}\nsupervisor: {children: []}\n")
            .text() ==
        "bank.yaml:3:1: expected each key once, got supervisor again (first at 2:1)\n");
}

TEST_CASE("R-011 ids and names are texts as they are written", "[config][check]") {
  const auto result = bank::check(
      with_children("    - {id: no, start: Clock, name: null}\n    - {id: 012, start: Clock}\n"
                    "    - {id: 1.10, start: Clock}\n    - {id: 2026-11-30, start: Clock}\n"));
  CHECK(child(result, 0).id == "no");
  CHECK(child(result, 0).name == "null");
  CHECK(child(result, 1).id == "012");
  CHECK(child(result, 2).id == "1.10");
  CHECK(child(result, 3).id == "2026-11-30");
}

TEST_CASE("R-012 a misspelt key behind a mark and carriage returns is found at its place",
          "[config][check]") {
  CHECK(bank::check("\xef\xbb\xbf"
                    "application: bank\r\nsupervisor:\r\n  strategy: one_for_all\r\n"
                    "  children:\r\n    # one\r\n    -\r\n      strat: Clock\r\n      id: a\r\n")
            .text() ==
        "bank.yaml:7:7: expected a key of a child (id, name, restart, shutdown, significant, "
        "mailbox, "
        "backoff, drop_expired, start, args or supervisor), got strat; did you mean start?\n");
  CHECK(bank::check("\xef\xbb\xbf"
                    "# 1\r\n# 2\r\n# 3\r\n# 4\r\napplication: bank\r\nsupervisor:\r\n"
                    "    intesity: 1\r\n    children: []\r\n")
            .text() ==
        "bank.yaml:7:5: expected a key of a supervisor (strategy, intensity, period, auto_shutdown "
        "or children), got intesity; did you mean intensity?\n");
}

TEST_CASE("R-012 unusual ids are ids", "[config][check]") {
  const auto result = bank::check(
      with_children("    - {id: zähler, start: Clock}\n    - {id: 作業, start: Clock}\n"
                    "    - {id: 🙂, start: Clock}\n    - {id: e\xcc\x81, start: Clock}\n"));
  CHECK(child(result, 0).id == "zähler");
  CHECK(child(result, 3).id == "e\xcc\x81");
}

TEST_CASE("the environment overrides settings and arguments", "[config][overrides]") {
  const auto result = bank::check(kBank, {{"BANK__LISTEN", "127.0.0.1:0"},
                                          {"BANK__LIMITS__DAILY", "5"},
                                          {"BANK__HOSTS", "[x, 'y']"},
                                          {"BANK__TOKEN", "s3cret: # x"},
                                          {"BANK__LEDGER__OPENING_CENTS", "7"},
                                          {"BANK__WORKERS__AUDIT__EVERY", "2s"},
                                          {"BANK__WORKERS__AUDIT__NAMED__A__WEIGHT", "9"},
                                          {"BANKER__X", "not ours"},
                                          {"BANK_CURRENCY", "not ours"}});
  INFO(result.text());
  REQUIRE(result.ok());
  const auto& settings = result.configuration->settings_as<bank::Settings>();
  CHECK(settings.listen == "127.0.0.1:0");
  CHECK(settings.limits.daily == 5);
  CHECK(settings.hosts == std::vector<std::string>{"x", "y"});
  CHECK(settings.token.reveal() == "s3cret: # x");
  CHECK(child(result, 0).args_of<bank::Ledger>().opening_cents == 7);
  CHECK(child(result, 0).args_of<bank::Ledger>().currency.get() == "EUR");
  const ChildDecl& audit = child(result, 2).supervisor->children.at(0);
  CHECK(audit.args_of<bank::Audit>().every == 2s);
  CHECK(audit.args_of<bank::Audit>().named.at("a").weight == 9);
  CHECK(audit.args_of<bank::Audit>().named.at("a").text.get() == "x");
}

TEST_CASE("an override may give what the file leaves out", "[config][overrides]") {
  const auto result =
      bank::check(with_children("    - {id: my-ledger, start: Ledger}\n"),
                  {{"BANK__MY_LEDGER__CURRENCY", "EUR"}, {"BANK__LIMITS", "{daily: 1}"}});
  CHECK(child(result, 0).args_of<bank::Ledger>().currency.get() == "EUR");
  CHECK(result.configuration->settings_as<bank::Settings>().limits.daily == 1);
}

TEST_CASE("an override of an aliased value changes one place only", "[config][overrides]") {
  const auto result = bank::check(
      with_children("    - {id: a, start: Ledger, args: &x {currency: EUR, opening_cents: 1}}\n"
                    "    - {id: b, start: Ledger, args: *x}\n"),
      {{"BANK__B__OPENING_CENTS", "2"}});
  CHECK(child(result, 0).args_of<bank::Ledger>().opening_cents == 1);
  CHECK(child(result, 1).args_of<bank::Ledger>().opening_cents == 2);
}

TEST_CASE("an override that is wrong or fits nothing names its variable, not its value",
          "[config][overrides]") {
  CHECK(
      bank::check(kBank, {{"BANK__LISTN", "hunter2"},
                          {"BANK__LIMITS__DAILY", "hunter2"},
                          {"BANK__HOSTS", "[hunter2"},
                          {"BANK__LIMITS", "{dialy: hunter2, factor: hunter2}"},
                          {"BANK__LEDGER__CURRENCY", "\xff"}})
          .text() ==
      "environment variable BANK__HOSTS: expected a list in YAML, got another value\n"
      "environment variable BANK__LEDGER__CURRENCY: expected UTF-8, got other bytes\n"
      "environment variable BANK__LIMITS: expected a decimal number such as 4.5, got another "
      "value\n"
      "environment variable BANK__LIMITS: expected a key (daily or factor), got dialy; did you "
      "mean daily?\n"
      "environment variable BANK__LIMITS__DAILY: expected an integer from -2147483648 to "
      "2147483647, got another value\n"
      "environment variable BANK__LISTN: expected the name of a setting or of a child's argument, "
      "got no such name; did you mean BANK__LISTEN?\n");
}

TEST_CASE("an override that fits two values is refused", "[config][overrides]") {
  CHECK(bank::check(with_children("    - {id: a-b, start: Ledger, args: {currency: EUR}}\n"
                                  "    - {id: a_b, start: Ledger, args: {currency: EUR}}\n"),
                    {{"BANK__A_B__CURRENCY", "USD"}})
            .text() ==
        "environment variable BANK__A_B__CURRENCY: expected the name of one value, got a name that "
        "fits 2 values\n");
}

TEST_CASE("the names of all overrides of a file can be listed", "[config][overrides]") {
  const Environment none;
  const auto names = override_names(*parse(kBank, &none).root, bank::application());
  CHECK(std::count(names.begin(), names.end(), "BANK__LIMITS__FACTOR") == 1);
  CHECK(std::count(names.begin(), names.end(), "BANK__WORKERS__AUDIT__LOG_SIZE") == 1);
  CHECK(std::count(names.begin(), names.end(), "BANK__TELLER__TIMEOUT") == 1);
}

TEST_CASE("a file can be checked by itself, without an environment", "[config][check]") {
  const std::string yaml = with_children(
      "    - id: ledger\n      start: Ledger\n      args:\n        currency: ${CURRENCY}\n"
      "        opening_cents: ${CENTS}\n        tellers: ${TELLERS:300}\n");
  const Environment environment{{"BANK__NONSENSE", "1"}};
  CHECK(bank::check(yaml, environment, {.no_env = true}).text() ==
        "bank.yaml:9:18: expected an integer from 0 to 255, got the value of ${TELLERS:300}\n");
  CHECK(bank::check(yaml, environment).diagnostics.size() == 4);
}

TEST_CASE("what is not known without an environment is not held against the file",
          "[config][check]") {
  const std::string yaml = with_children(
      "    - {id: a, start: Ledger, name: \"${NAME}\", args: {currency: E}, "
      "mailbox: {max: \"${MAX}\"}}\n"
      "    - {id: b, start: Teller, args: {ledger: main}}\n"
      "    - {id: \"${ID}\", start: Clock, backoff: {min: \"${MIN}\", max: 1s}}\n");
  CHECK(bank::check(yaml, {}, {.no_env = true}).text().empty());
  const Environment environment{{"NAME", "main"}, {"MAX", "0"}, {"ID", "a"}, {"MIN", "2s"}};
  CHECK(
      bank::check(yaml, environment).text() ==
      "bank.yaml:4:83: expected at least 1 message, got the value of ${MAX}\n"
      "bank.yaml:6:12: expected an id that no other child of this supervisor has, got the value of "
      "${ID} again (first at 4:12)\n"
      "bank.yaml:6:65: expected a duration not below min, got 1s\n");
}

TEST_CASE("thousands of mistakes are counted, not listed", "[config][check]") {
  std::string yaml = "application: bank\nsupervisor: {children: []}\n";
  for (int i = 0; i < 1000; ++i) yaml += "key" + std::to_string(i) + ": 1\n";
  const auto result = bank::check(yaml);
  CHECK(result.diagnostics.size() == 201);
  CHECK(result.diagnostics.back().text ==
        "expected no more mistakes, got 800 others that are not shown");
}

TEST_CASE("the environment of this process is a map", "[config][environment]") {
  const Environment environment = process_environment();
  CHECK(environment.count("") == 0);
}
