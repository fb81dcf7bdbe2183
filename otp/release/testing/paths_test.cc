// Where a release lies and by which way it is called.

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "otp/release/node.h"
#include "otp/release/testing/process_driver.h"

namespace otp::release::testing {
namespace {

/// Every command once, in an order that covers both states, with the given way of calling.
void check_all_commands(const Installed& installed,
                        const std::function<Ran(std::vector<std::string>)>& call) {
  CHECK(call({"status"}).status == kExitNotRunning);
  Ran started = call({"start"});
  INFO(started.err);
  CHECK(started.status == kExitOk);
  CHECK(started.out.find("fake 1.0.0 started (pid ") == 0);
  CHECK(started.out.find("): here\n") != std::string::npos);
  Ran status = call({"status"});
  CHECK(status.status == kExitOk);
  CHECK(status.out.find("fake 1.0.0 is running (pid ") == 0);
  CHECK(call({"pid"}).out == read_text(installed.run_dir() + "/fake.pid"));
  CHECK(call({"tree"}).out == "fake\n  child\n");
  CHECK(call({"tree", "--json"}).out == "{\"supervisor\":\"fake\"}\n");
  CHECK(call({"check"}).out == installed.root() + "/config/fake.yaml: ok\n");
  CHECK(call({"version"}).out.find("fake 1.0.0\n") == 0);
  CHECK(call({"start"}).status == kExitAlreadyRunning);
  CHECK(call({"foreground"}).status == kExitAlreadyRunning);
  CHECK(call({"restart"}).status == kExitOk);
  CHECK(call({"stop"}).out == "fake has stopped\n");
  CHECK(call({"status"}).status == kExitNotRunning);
  CHECK(call({"stop"}).status == kExitOk);
  CHECK(call({"pid"}).status == kExitNotRunning);
  CHECK(call({"tree"}).status == kExitNotRunning);
}

TEST_CASE("R-014 every command works in a folder with an odd name", "[release][paths]") {
  Installed installed("my dir (x86)/it's $HOME & \xc3\xa9;*[1]");
  SECTION("by its whole path") {
    check_all_commands(installed, [&](std::vector<std::string> words) {
      return installed.call(std::move(words), {.folder = "/"});
    });
  }
  SECTION("by a relative path") {
    check_all_commands(installed, [&](std::vector<std::string> words) {
      words.insert(words.begin(), "bin/fake");
      return run(words, {.folder = installed.root()});
    });
  }
  SECTION("from a shell") {
    std::string shell = GENERATE("/bin/dash", "/bin/bash");
    check_all_commands(installed, [&](std::vector<std::string> words) {
      words.insert(words.begin(), {shell, "-c", "../bin/fake \"$@\"", shell});
      return run(words, {.folder = installed.root() + "/config"});
    });
  }
  // Nothing was created elsewhere: beside the release, only the folders on the way to it.
  CHECK(std::distance(std::filesystem::directory_iterator(installed.folder().path()), {}) == 1);
}

TEST_CASE("R-014 a file to check may have an odd name, too", "[release][paths]") {
  Installed installed;
  std::string name = "it's $HOME & [1].yaml";
  write_file(installed.root() + "/" + name, "");
  Ran checked = installed.call({"check", name}, {.folder = installed.root()});
  CHECK(checked.out == installed.root() + "/" + name + ": ok\n");
  CHECK(checked.status == kExitOk);
  CHECK(installed.call({"check", "none.yaml"}).status == kExitUsage);
}

/// All the ways of R-015, made for one release.
struct Ways {
  explicit Ways(const Installed& installed) {
    namespace fs = std::filesystem;
    std::string base = installed.folder().path();
    fs::create_directories(base + "/links/deep");
    fs::create_symlink(installed.program(), base + "/links/absolute");
    fs::create_symlink("../r/bin/fake", base + "/links/relative");
    fs::create_symlink("../relative", base + "/links/deep/chain");
    fs::create_symlink("deep/chain", base + "/links/fake");
    fs::create_directory_symlink("r", base + "/current");
    fs::create_symlink(base + "/current/bin/fake", base + "/links/by_current");

    for (const char* link : {"absolute", "relative", "deep/chain", "fake", "by_current"}) {
      std::string path = base + "/links/" + link;
      add([path](std::vector<std::string> words) { return with(path, std::move(words), {}); });
    }
    add([=](std::vector<std::string> words) {
      return with("current/bin/fake", std::move(words), {.folder = base});
    });
    add([=](std::vector<std::string> words) {  // found by PATH, which has no other program
      words.insert(words.begin(), {"-c", "fake \"$@\"", "sh"});
      return with("/bin/sh", std::move(words), {.environment = {{"PATH", base + "/links"}}});
    });
    add([=](std::vector<std::string> words) {  // from a folder that is gone
      fs::create_directory(base + "/gone");
      RunOptions options{.folder = base + "/gone"};
      options.in_child = [base] { rmdir((base + "/gone").c_str()); };
      return with(base + "/links/fake", std::move(words), options);
    });
  }

  using Call = std::function<Ran(std::vector<std::string>)>;
  void add(Call call) { calls.push_back(std::move(call)); }
  static Ran with(const std::string& program, std::vector<std::string> words,
                  const RunOptions& options) {
    words.insert(words.begin(), program);
    return run(words, options);
  }

  std::vector<Call> calls;
};

TEST_CASE("R-015 through every link it is the same release, pid file and socket",
          "[release][paths]") {
  Installed installed;
  Ways ways(installed);
  size_t index = 0;
  for (const Ways::Call& starter : ways.calls) {
    INFO("started by way " << index);
    Ran started = starter({"start"});
    INFO(started.err);
    REQUIRE(started.status == kExitOk);
    std::string pid = read_text(installed.run_dir() + "/fake.pid");
    for (const Ways::Call& other : ways.calls) {
      CHECK(other({"status"}).status == kExitOk);
      CHECK(other({"pid"}).out == pid);
    }
    CHECK(ways.calls[(index + 1) % ways.calls.size()]({"stop"}).status == kExitOk);
    CHECK(installed.status_of("status") == kExitNotRunning);
    ++index;
  }
  CHECK_FALSE(std::filesystem::exists(installed.folder() / "links/var"));
}

/// Copies what `program` needs from the system into `root`: libc, libm and the loader.
void copy_libraries(const std::string& root) {
  namespace fs = std::filesystem;
  for (const char* file : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
                           "/lib64/ld-linux-x86-64.so.2"}) {
    fs::create_directories(root + fs::path(file).parent_path().string());
    fs::copy_file(file, root + file);
  }
}

TEST_CASE("R-016 R-020 glibc is all that it needs: no procfs, no /dev, no shell",
          "[release][paths]") {
  if (geteuid() != 0 || sanitized()) {
    WARN("needs root, and a program without a sanitizer's libraries");
    return;
  }
  Installed installed;
  std::string root = installed.folder().path();
  copy_libraries(root);
  std::string deep(150, 'd');
  std::string run_dir = GENERATE_COPY(std::string("/r/var"), "/r/" + deep, "/r/" + deep + "e");
  std::filesystem::create_directory(root + "/bin");
  std::filesystem::create_symlink("../r/bin/fake", root + "/bin/link");
  RunOptions options{.environment = {{"FAKE_RUN_DIR", run_dir}}};
  options.in_child = [root] {
    if (chroot(root.c_str()) != 0 || chdir("/bin") != 0) _exit(125);
  };
  auto call = [&](const char* word) { return run({"link", word}, options); };
  Ran started = call("start");
  INFO(started.err);
  CHECK(started.status == kExitOk);
  CHECK(call("status").status == kExitOk);
  CHECK(call("start").status == kExitAlreadyRunning);
  CHECK(call("tree").out == "fake\n  child\n");
  CHECK(std::filesystem::exists(root + run_dir + "/fake.sock"));
  CHECK(call("stop").status == kExitOk);
  CHECK(call("status").status == kExitNotRunning);
}

TEST_CASE("R-020 deep run directories that begin alike are different nodes", "[release][paths]") {
  Installed installed;
  size_t length = GENERATE(100, 107, 108, 200);
  std::string base = installed.folder() / "";
  size_t name = length - std::string("/fake.sock").size() - base.size() - 1;
  std::string first = base + std::string(name, 'a') + "1";
  std::string second = base + std::string(name, 'a') + "2";
  auto call = [&](const std::string& where, const char* word) {
    return installed.call({word, "--run-dir", where});
  };
  REQUIRE((first + "/fake.sock").size() == length);
  CHECK(call(first, "start").status == kExitOk);
  CHECK(call(second, "status").status == kExitNotRunning);
  CHECK(call(second, "start").status == kExitOk);
  CHECK(call(first, "pid").out == read_text(first + "/fake.pid"));
  CHECK(call(second, "pid").out == read_text(second + "/fake.pid"));
  CHECK(call(first, "tree").status == kExitOk);
  CHECK(call(first, "stop").status == kExitOk);
  CHECK(call(first, "status").status == kExitNotRunning);
  CHECK(call(second, "status").status == kExitOk);
  CHECK(call(second, "stop").status == kExitOk);
}

}  // namespace
}  // namespace otp::release::testing
