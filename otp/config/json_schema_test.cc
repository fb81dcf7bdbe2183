#include "otp/config/json_schema.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "otp/config/testing/bank.h"

namespace {

struct Node {
  std::string label;
  std::vector<Node> nodes;
};

class Server {
 public:
  struct Args {
    otp::Required<Node> root;
    otp::Timeout timeout = otp::infinity;
  };
};

std::string golden(const std::string& name) {
  std::ifstream file("otp/config/testing/" + name, std::ios::binary);
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the schema of an application is the same text every time", "[config][schema]") {
  const std::string schema = otp::config::json_schema(bank::application());
  CHECK(schema == golden("bank.schema.json"));
  CHECK(schema == otp::config::json_schema(bank::application()));
}

TEST_CASE("a struct that contains itself is defined once", "[config][schema]") {
  const std::string schema = otp::config::json_schema(
      {.name = "tree", .servers = {otp::config::describe_server<Server>()}});
  const std::string reference = "\"$ref\": \"#/$defs/anonymous.namespace.Node\"";
  CHECK(schema.find(reference) != std::string::npos);
  CHECK(schema.find(reference, schema.find(reference) + 1) != std::string::npos);
  CHECK(schema.find("infinity") != std::string::npos);
}
