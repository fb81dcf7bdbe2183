#include "otp/release/layout.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "otp/release/testing/temporary_folder.h"

namespace otp::release {
namespace {

using testing::TemporaryFolder;
using testing::write_file;

/// A release `shop` of version 2.1 in a folder of its own, and an environment to set.
struct Release {
  Release() {
    std::filesystem::create_directories(folder / "bin");
    write_file(folder / "bin/shop", "");
    manifest(R"({"name": "shop", "version": "2.1", "config": "config/shop.yaml"})");
  }
  void manifest(const std::string& text) { write_file(folder / "release.json", text); }
  LayoutRequest request() {
    LayoutRequest made;
    made.executable = folder / "bin/shop";
    made.environment = [this](const std::string& name) { return environment[name]; };
    return made;
  }
  std::string error() {
    Outcome<Layout> layout = find_layout(request());
    return layout.ok() ? "no error" : layout.error;
  }

  TemporaryFolder folder;
  std::map<std::string, std::string> environment;
};

TEST_CASE("a release names itself, its configuration and its run directory", "[release][layout]") {
  Release release;
  Outcome<Layout> found = find_layout(release.request());
  REQUIRE(found.ok());
  Layout& layout = *found.value;
  CHECK(layout.in_release());
  CHECK(layout.managed());
  CHECK(layout.name == "shop");
  CHECK(layout.version == "2.1");
  CHECK(layout.root == release.folder.path());
  CHECK(layout.config == release.folder / "config/shop.yaml");
  CHECK(layout.run_dir == release.folder / "var");
  CHECK(layout.socket_path() == release.folder / "var/shop.sock");
  CHECK_FALSE(std::filesystem::exists(layout.run_dir));
}

TEST_CASE("the environment moves configuration and run directory", "[release][layout]") {
  Release release;
  release.manifest(R"({"name": "my-shop.eu", "version": "1"})");
  release.environment = {{"MY_SHOP_EU_CONFIG", "/etc/shop.yaml"},
                         {"MY_SHOP_EU_RUN_DIR", "/run/shop//"}};
  Outcome<Layout> layout = find_layout(release.request());
  REQUIRE(layout.ok());
  CHECK(layout.value->config == "/etc/shop.yaml");
  CHECK(layout.value->run_dir == "/run/shop");

  LayoutRequest request = release.request();
  request.config_option = "/other.yaml";
  request.run_dir_option = "/other";
  layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(layout.value->config == "/other.yaml");
  CHECK(layout.value->run_dir == "/other");
}

TEST_CASE("an empty variable counts as unset", "[release][layout]") {
  Release release;
  release.environment = {{"SHOP_CONFIG", ""}, {"SHOP_RUN_DIR", ""}};
  Outcome<Layout> layout = find_layout(release.request());
  REQUIRE(layout.ok());
  CHECK(layout.value->run_dir == release.folder / "var");
}

TEST_CASE("the configuration may name the run directory, the environment goes before it",
          "[release][layout]") {
  Release release;
  LayoutRequest request = release.request();
  std::string asked;
  request.run_dir_in_config = [&](const std::string& config) -> Outcome<std::string> {
    asked = config;
    return std::string("/var/lib/shop");
  };
  Outcome<Layout> layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(asked == release.folder / "config/shop.yaml");
  CHECK(layout.value->run_dir == "/var/lib/shop");

  release.environment["SHOP_RUN_DIR"] = "/run/shop";
  layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(layout.value->run_dir == "/run/shop");
}

TEST_CASE("relative paths count from the working directory", "[release][layout]") {
  Release release;
  LayoutRequest request = release.request();
  request.config_option = "my.yaml";
  Outcome<Layout> layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(layout.value->config == std::filesystem::current_path().string() + "/my.yaml");
}

TEST_CASE("under bazel run relative paths count from where that was typed", "[release][layout]") {
  Release release;
  release.environment["BUILD_WORKING_DIRECTORY"] = "/srv/shop";
  LayoutRequest request = release.request();
  request.config_option = "my.yaml";
  request.run_dir_option = "run";
  Outcome<Layout> layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(layout.value->config == "/srv/shop/my.yaml");
  CHECK(layout.value->run_dir == "/srv/shop/run");
  request.config_option = "/etc/shop.yaml";
  layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(layout.value->config == "/etc/shop.yaml");
}

TEST_CASE("a program outside a release has no run directory unless told", "[release][layout]") {
  TemporaryFolder folder;
  LayoutRequest request;
  request.executable = folder / "tool";
  request.program_version = "7";
  request.environment = [](const std::string&) { return std::string(); };
  Outcome<Layout> layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK_FALSE(layout.value->in_release());
  CHECK_FALSE(layout.value->managed());
  CHECK(layout.value->name == "tool");
  CHECK(layout.value->version == "7");
  request.program_name = "other";
  request.run_dir_option = "/run/x";
  layout = find_layout(request);
  REQUIRE(layout.ok());
  CHECK(layout.value->name == "other");
  CHECK(layout.value->managed());
}

TEST_CASE("a broken release.json is reported with its path", "[release][layout]") {
  Release release;
  std::string path = release.folder / "release.json";
  release.manifest("{");
  CHECK(release.error().find(path + ": expected a JSON object") == 0);
  release.manifest("[]");
  CHECK(release.error().find(path + ": expected a JSON object") == 0);
  release.manifest(R"({"name": "shop"})");
  CHECK(release.error() == path + ": expected a string 'version', got nothing");
  release.manifest(R"({"name": 7, "version": "1"})");
  CHECK(release.error() == path + ": expected a string 'name', got another type");
  release.manifest(R"({"name": "../x", "version": "1"})");
  CHECK(release.error().find("'../x' cannot be the name of a release") == 0);
  release.manifest(std::string(70'000, ' '));
  CHECK(release.error().find(path) != std::string::npos);
}

TEST_CASE("the run directory is made for its owner alone", "[release][layout]") {
  Release release;
  release.environment["SHOP_RUN_DIR"] = release.folder / "deep/er";
  Outcome<Layout> layout = find_layout(release.request());
  REQUIRE(layout.ok());
  mode_t before = umask(0777);
  std::string error = create_run_dir(*layout.value);
  umask(before);
  CHECK(error == "");
  struct stat info{};
  REQUIRE(stat(layout.value->run_dir.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
  CHECK(create_run_dir(*layout.value) == "");
}

TEST_CASE("a run directory that cannot be made is named, with what would help",
          "[release][layout]") {
  Release release;
  release.environment["SHOP_RUN_DIR"] = release.folder / "release.json/run";
  Outcome<Layout> layout = find_layout(release.request());
  REQUIRE(layout.ok());
  std::string error = create_run_dir(*layout.value);
  CHECK(error.find(release.folder / "release.json") != std::string::npos);
  CHECK(error.find("SHOP_RUN_DIR") != std::string::npos);
}

TEST_CASE("this program finds itself", "[release][layout]") {
  std::string path = executable_path();
  REQUIRE_FALSE(path.empty());
  CHECK(path == std::filesystem::canonical("/proc/self/exe"));
}

}  // namespace
}  // namespace otp::release
