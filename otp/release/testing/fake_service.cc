// A service without a runtime behind it, for the tests of the release commands. Its configuration
// is a list of lines `key value` that say how to behave:
//
//   details TEXT    what to tell with ready()
//   fail TEXT       fail() in the boot, status 2
//   die STATUS      leave the boot with a line on standard error, without fail()
//   throw TEXT      throw in the boot
//   boot_gate PATH  be ready only when somebody opened and closed the fifo PATH for writing
//   stop_gate PATH  the same for the end of the stop
//   silent 1        never be ready
//   deaf 1          never notice that it should stop
//   children N      run N children that leave an orphan each; `status` counts right exit statuses
//   hold_descriptors 1   take every descriptor there is
//   chatter N       print N lines
//   quiet 1         print nothing
//
// Events go to `events` in the working directory, one line each: started, stopping, stopped.

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>

#include "otp/release/commands.h"

namespace {

using otp::release::AdminRequest;
using otp::release::AdminResponse;
using otp::release::CommandContext;
using otp::release::NodeCallbacks;
using otp::release::RunContext;

using Settings = std::map<std::string, std::string>;

Settings read_settings(const std::string& path) {
  Settings settings;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    size_t space = line.find(' ');
    if (space != std::string::npos) settings[line.substr(0, space)] = line.substr(space + 1);
  }
  return settings;
}

std::string get(const Settings& settings, const std::string& key) {
  auto found = settings.find(key);
  return found == settings.end() ? "" : found->second;
}

void note(const std::string& event) {
  // Not a stream: the sanitizer's look at a virtual table needs a descriptor, and there may be
  // none.
  int fd = open("events", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  [[maybe_unused]] ssize_t written = write(fd, (event + "\n").c_str(), event.size() + 1);
  close(fd);
}

/// Waits until another process opens and closes the fifo.
void pass_gate(const std::string& path) {
  if (path.empty()) return;
  std::ifstream gate(path);
  std::string all;
  while (std::getline(gate, all)) continue;
}

class StopFlag {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

/// One child that exits with 3 and leaves a grandchild behind. Whether its status was right.
bool run_child() {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const char* argv[] = {"sh", "-c", "(exec true) & (exec sleep 0.01) & exit 3", nullptr};
  pid_t pid = 0;
  int failed =
      posix_spawn(&pid, "/bin/sh", nullptr, &attributes, const_cast<char**>(argv), environ);
  posix_spawnattr_destroy(&attributes);
  int status = 0;
  return failed == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
         WEXITSTATUS(status) == 3;
}

void hold_descriptors() {
  rlimit limit{.rlim_cur = 64, .rlim_max = 64};
  setrlimit(RLIMIT_NOFILE, &limit);
  while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) continue;
}

int serve(RunContext& context, const Settings& settings) {
  StopFlag stop;
  NodeCallbacks callbacks(context);
  if (get(settings, "deaf").empty()) callbacks.on_stop([&stop] { stop.set(); });

  int right = 0;
  int children = std::atoi(get(settings, "children").c_str());
  for (int i = 0; i < children; ++i) right += run_child() ? 1 : 0;
  callbacks.on_status([right] { return otp::json::object{{"right_statuses", right}}; });
  callbacks.on_command("tree", [](const AdminRequest& request) {
    if (request.args.contains("json") && request.args.at("json").as_bool()) {
      return AdminResponse::success(otp::json::object{{"supervisor", "fake"}});
    }
    return AdminResponse::success("fake\n  child\n");
  });
  if (!get(settings, "hold_descriptors").empty()) hold_descriptors();

  pass_gate(get(settings, "boot_gate"));
  note("started");
  if (get(settings, "silent").empty()) context.ready(get(settings, "details"));
  if (get(settings, "quiet").empty()) std::printf("ready\n");
  int chatter = std::atoi(get(settings, "chatter").c_str());
  for (int i = 0; i < chatter; ++i) std::printf("line %d\n", i);
  std::fflush(stdout);

  stop.wait();
  note("stopping");
  pass_gate(get(settings, "stop_gate"));
  note("stopped");
  return 0;
}

int run(RunContext& context) {
  Settings settings = read_settings(context.layout().config);
  if (std::string reason = get(settings, "fail"); !reason.empty()) {
    context.fail(reason);
    return 2;
  }
  if (std::string status = get(settings, "die"); !status.empty()) {
    std::fprintf(stderr, "the child 'listener' could not bind\n");
    return std::atoi(status.c_str());
  }
  if (std::string text = get(settings, "throw"); !text.empty()) throw std::runtime_error(text);
  return serve(context, settings);
}

int check(const CommandContext& context) {
  std::ifstream file(context.layout.config);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", context.layout.config.c_str());
    return otp::release::kExitUsage;
  }
  std::printf("%s: ok\n", context.layout.config.c_str());
  return otp::release::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  otp::release::NodeHooks hooks;
  hooks.name = "fake";
  hooks.version = "0.0.1";
  hooks.run = run;
  hooks.check = check;
  hooks.commands = {{"schema", "print the schema", [](const CommandContext&) {
                       std::printf("{}\n");
                       return 0;
                     }}};
  return otp::release::run_commands(hooks, argc, argv);
}
