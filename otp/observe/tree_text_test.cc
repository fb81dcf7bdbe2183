#include "otp/observe/tree_text.h"

#include <catch2/catch.hpp>
#include <locale>

#include "otp/base/utf8.h"

using namespace otp::observe;

namespace {

TreeNode worker(std::string id, std::string pid) {
  return {.id = std::move(id), .pid = std::move(pid), .restart = "permanent", .shutdown = "5s"};
}

TreeNode bank() {
  TreeNode root{.id = "bank_sup", .name = "bank_sup", .kind = TreeKind::supervisor};
  root.pid = "<0.3.1>";
  root.strategy = "rest_for_one";
  root.children.push_back(worker("ledger", "<0.5.1>"));
  root.children.back().name = "the_ledger";
  TreeNode workers{.id = "workers", .kind = TreeKind::supervisor};
  workers.pid = "<0.16.1>";
  workers.strategy = "one_for_one";
  workers.restart = "permanent";
  workers.shutdown = "infinity";
  workers.children.push_back(worker("w1", "<0.17.1>"));
  workers.children.back().mailbox_letters = 12;
  workers.children.push_back(worker("w2", ""));
  workers.children.back().state = TreeState::restarting;
  root.children.push_back(workers);
  TreeNode idle = worker("idle", "<0.9.1>");
  idle.state = TreeState::suspended;
  idle.restart = "temporary";
  idle.shutdown = "brutal_kill";
  idle.restarts = 3;
  root.children.push_back(idle);
  return root;
}

}  // namespace

TEST_CASE("a tree is drawn with lines and aligned columns", "[tree_text]") {
  const std::string expected =
      "bank_sup                <0.3.1>   running     supervisor  rest_for_one\n"
      "├─ ledger (the_ledger)  <0.5.1>   running     worker                    permanent  5s\n"
      "├─ workers              <0.16.1>  running     supervisor  one_for_one   permanent  "
      "infinity\n"
      "│  ├─ w1                <0.17.1>  running     worker                    permanent  5s      "
      "     mailbox=12\n"
      "│  └─ w2                -         restarting  worker                    permanent  5s\n"
      "└─ idle                 <0.9.1>   suspended   worker                    temporary  "
      "brutal_kill  restarts=3\n";
  CHECK(tree_text(bank()) == expected);
}

TEST_CASE("a terminal without box drawing gets ASCII", "[tree_text]") {
  TreeNode root = bank();
  root.children.resize(2);
  const std::string text = tree_text(root, {.ascii = true});
  CHECK_THAT(text, Catch::Contains("\n|- ledger (the_ledger)  "));
  CHECK_THAT(text, Catch::Contains("\n`- workers "));
  CHECK_THAT(text, Catch::Contains("\n   |- w1 "));
  CHECK_THAT(text, Catch::Contains("\n   `- w2 "));
  for (char letter : text) CHECK(static_cast<unsigned char>(letter) < 0x80);
}

TEST_CASE("a supervisor with very many children can be shortened", "[tree_text]") {
  TreeNode root{.id = "root", .kind = TreeKind::supervisor};
  for (int index = 0; index < 1000; ++index) {
    root.children.push_back(worker("c" + std::to_string(index), ""));
  }
  const std::string text = tree_text(root, {.children_max = 2});
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  CHECK_THAT(text, Catch::Contains("├─ c1 "));
  CHECK_THAT(text, Catch::EndsWith("└─ ... 998 more\n"));
  CHECK(tree_text({.id = "alone"}) == "alone  -  running  worker\n");
}

TEST_CASE("the same tree as JSON", "[tree_text]") {
  TreeNode root = bank();
  root.children.erase(root.children.begin() + 2);
  CHECK(tree_json(root) ==
        "{\"id\":\"bank_sup\",\"name\":\"bank_sup\",\"kind\":\"supervisor\",\"state\":\"running\","
        "\"pid\":\"<0.3.1>\",\"strategy\":\"rest_for_one\",\"children\":["
        "{\"id\":\"ledger\",\"name\":\"the_ledger\",\"kind\":\"worker\",\"state\":\"running\","
        "\"pid\":\"<0.5.1>\",\"restart\":\"permanent\",\"shutdown\":\"5s\"},"
        "{\"id\":\"workers\",\"kind\":\"supervisor\",\"state\":\"running\",\"pid\":\"<0.16.1>\","
        "\"strategy\":\"one_for_one\",\"restart\":\"permanent\",\"shutdown\":\"infinity\","
        "\"children\":["
        "{\"id\":\"w1\",\"kind\":\"worker\",\"state\":\"running\",\"pid\":\"<0.17.1>\","
        "\"restart\":\"permanent\",\"shutdown\":\"5s\",\"mailbox\":12},"
        "{\"id\":\"w2\",\"kind\":\"worker\",\"state\":\"restarting\",\"pid\":null,"
        "\"restart\":\"permanent\",\"shutdown\":\"5s\"}]}]}");
}

TEST_CASE("R-033 ids of any bytes give valid text and JSON", "[tree_text]") {
  TreeNode root{.id = "a\nb\x1b\xff\xc3\xa9", .name = std::string("\0", 1)};
  CHECK(tree_text(root) == "a?b?\xef\xbf\xbd\xc3\xa9 (?)  -  running  worker\n");
  CHECK(otp::is_valid_utf8(tree_json(root)));
  CHECK_THAT(tree_json(root), Catch::StartsWith("{\"id\":\"a\\nb\\u001b\xef\xbf\xbd\xc3\xa9\""));
}

TEST_CASE("R-039 the global locale changes no byte of a tree", "[tree_text]") {
  class Grouping : public std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  TreeNode root = bank();
  root.restarts = 1234567;
  const std::string text = tree_text(root);
  const std::string json = tree_json(root);
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouping));
  const std::string text_then = tree_text(root);
  const std::string json_then = tree_json(root);
  std::locale::global(before);
  CHECK(text_then == text);
  CHECK(json_then == json);
}
