// The program of app_release_test.py: three applications, settings, commands, and a line on
// standard output for all that happens.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "otp/application/run.h"

namespace {

struct Settings {
  std::string greeting = "built";
  std::string place = "nowhere";
};

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

class Talker {
 public:
  struct Args {
    otp::Required<std::string> id;
    otp::Name<Talker> next{};
    std::chrono::milliseconds pause{0};
  };
  explicit Talker(Args args) : id_(args.id.get()) {
    otp::trap_exit(true);
    say("up " + id_);
  }
  void terminate(otp::ExitReason) { say("down " + id_); }

 private:
  std::string id_;
};

class Greeter : public Talker {
 public:
  struct Args {
    otp::Required<std::string> id;
  };
  explicit Greeter(Args args) : Talker({.id = args.id}) {
    say("greeting " + otp::settings<Settings>().greeting);
  }
};

/// Starts once; then its disk is gone.
class Flaky {
 public:
  struct Break {};
  Flaky() {
    static std::atomic<int> starts{0};
    if (starts++ > 0) throw std::runtime_error("the disk is gone");
  }
  otp::Init init() { return otp::ok().then_continue(Break{}); }
  otp::Async<otp::CastResult> handle_continue(Break) {
    co_await otp::sleep(std::chrono::milliseconds(50));
    co_return otp::stop(otp::ExitReason::atom("broken"));
  }
};

otp::Application talking(const std::string& name, std::vector<std::string> needs) {
  otp::Application application;
  application.name = name;
  application.applications = std::move(needs);
  application.tree = [name] {
    otp::SupervisorSpec spec;
    spec.children = {otp::child<Talker>(name, {.id = name})};
    return spec;
  };
  return application;
}

otp::Async<otp::Result<std::string>> greet(std::vector<std::string> arguments) {
  std::string text = otp::settings<Settings>().greeting;
  for (const std::string& word : arguments) text += " " + word;
  co_return text + " from " + otp::application::get_application().value_or("nobody");
}
otp::Async<otp::Result<std::string>> fail(std::vector<std::string>) {
  co_return otp::ExitReason::tagged("no_disk", otp::Term(7));
}
otp::Async<otp::Result<std::string>> applications(std::vector<std::string>) {
  std::string text;
  for (const auto& one : otp::application::which()) text += one.name + " ";
  text += "/";
  for (const std::string& name : otp::application::loaded()) text += " " + name;
  co_return text;
}

otp::Application service() {
  otp::Application service = talking("service", {"base"});
  service.servers = otp::servers<Talker, Greeter, Flaky>();
  service.settings = otp::settings_type<Settings>();
  service.tree = nullptr;
  service.commands = {{"greet", greet}, {"fail", fail}, {"applications", applications}};
  return service;
}

}  // namespace

int main(int argc, char** argv) {
  return otp::run({service(), talking("base", {}), talking("audit", {})}, argc, argv);
}
