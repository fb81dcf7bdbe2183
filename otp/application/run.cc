#include "otp/application/run.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>

#include "otp/application/controller.h"
#include "otp/application/tree.h"
#include "otp/config/check.h"
#include "otp/config/json_schema.h"
#include "otp/io/asio_poller.h"
#include "otp/observe/fd_log_handler.h"
#include "otp/observe/logger.h"
#include "otp/release/commands.h"

namespace otp {

namespace {

using internal::PlannedApplication;
using release::CommandContext;
using release::RunContext;

constexpr auto kLogFlushMax = std::chrono::seconds(2);

std::string getenv_or(const std::string& name, const char* otherwise) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// A whole file, or an error line in `error`.
std::string read_file(const std::string& path, std::string& error) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    error = path + ": " + std::strerror(errno);
    return {};
  }
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) error = path + ": cannot be read";
  return text;
}

/// Joins the thread that hears of the stop with the controller, whichever comes first.
class StopRequests {
 public:
  void ask(System& system) {
    std::lock_guard lock(mutex_);
    asked_ = true;
    if (controller_) system.send(controller_, internal::StopApplications{});
  }
  /// In the controller's process.
  void listen() {
    std::lock_guard lock(mutex_);
    controller_ = self();
    if (asked_) (void)otp::send(controller_, internal::StopApplications{});
  }

 private:
  std::mutex mutex_;
  Pid controller_;      // guarded by mutex_
  bool asked_ = false;  // guarded by mutex_
};

Async<int> control(StopRequests* stop, std::vector<PlannedApplication> plan,
                   internal::ControllerHooks hooks) {
  stop->listen();
  co_return co_await internal::control_applications(std::move(plan), std::move(hooks));
}

/// The program: its applications in start order, and what its commands do.
class Program {
 public:
  Program(std::string main_name, std::string main_version, std::vector<Application> applications)
      : main_name_(std::move(main_name)),
        main_version_(std::move(main_version)),
        applications_(std::move(applications)) {}

  release::NodeHooks hooks() {
    release::NodeHooks hooks;
    hooks.name = main_name_;
    hooks.version = main_version_;
    hooks.run = [this](RunContext& context) { return run(context); };
    hooks.check = [this](const CommandContext& context) { return check(context); };
    hooks.describe_tree = [this](const CommandContext& context) { return tree(context); };
    hooks.commands.push_back({"schema", "a JSON Schema of the configuration, for editors",
                              [this](const CommandContext&) { return schema(); }});
    return hooks;
  }

 private:
  std::vector<config::ApplicationDecl> declarations() const {
    std::vector<config::ApplicationDecl> declarations;
    for (const Application& application : applications_) {
      config::ApplicationDecl decl;
      decl.name = application.name;
      if (application.settings) decl.settings = application.settings->record;
      for (const ServerEntry& entry : application.servers) decl.servers.push_back(entry.decl);
      declarations.push_back(std::move(decl));
    }
    return declarations;
  }

  // The configuration, or nothing after its mistakes were printed.
  std::optional<config::Configuration> load(const std::string& path, bool no_env,
                                            std::string& mistakes) const {
    if (path.empty()) {
      mistakes = "no configuration: name one with --config FILE";
      return std::nullopt;
    }
    std::string text = read_file(path, mistakes);
    if (!mistakes.empty()) return std::nullopt;
    auto result = config::check(text, path, declarations(), config::process_environment(),
                                {.no_env = no_env});
    if (!result.ok()) mistakes = result.text();
    return std::move(result.configuration);
  }

  int check(const CommandContext& context) const {
    bool no_env = false;
    for (const std::string& word : context.arguments) no_env |= word == "--no-env";
    std::string mistakes;
    if (!load(context.layout.config, no_env, mistakes)) return print_mistakes(mistakes);
    std::printf("%s: ok\n", context.layout.config.c_str());
    return release::kExitOk;
  }

  int tree(const CommandContext& context) const {
    std::string mistakes;
    auto configuration = load(context.layout.config, true, mistakes);
    if (!configuration) return print_mistakes(mistakes);
    observe::TreeNode node =
        internal::declared_tree(configuration->application, configuration->supervisor);
    std::string text = context.json ? observe::tree_json(node) + "\n" : observe::tree_text(node);
    std::fputs(text.c_str(), stdout);
    return release::kExitOk;
  }

  int schema() const {
    for (const config::ApplicationDecl& decl : declarations()) {
      if (decl.name == main_name_) std::printf("%s\n", config::json_schema(decl).c_str());
    }
    return release::kExitOk;
  }

  const Application& main() const {
    for (const Application& application : applications_) {
      if (application.name == main_name_) return application;
    }
    return applications_.front();
  }

  static int print_mistakes(const std::string& mistakes) {
    std::fprintf(stderr, "%s\n", mistakes.c_str());
    return release::kExitUsage;
  }

  // Every application with its tree: from the configuration, or from its own `tree`.
  bool plan(const config::Configuration* configuration, std::vector<PlannedApplication>& planned,
            std::string& error) const {
    for (const Application& application : applications_) {
      if (configuration != nullptr && configuration->application == application.name) {
        planned.push_back(
            {application, supervisor_spec(configuration->supervisor, application.servers)});
      } else if (application.tree) {
        planned.push_back({application, application.tree()});
      } else {
        error = "the application " + application.name + " has neither a configuration nor a tree";
        return false;
      }
    }
    return true;
  }

  std::unique_ptr<observe::Logger> make_logger(RunContext& context) const {
    const std::string prefix = release::environment_prefix(main_name_);
    observe::FdLogOptions options;
    options.fd = STDERR_FILENO;
    if (getenv_or(prefix + "_LOG_FORMAT", "text") == "json") {
      options.format = observe::LogFormat::json;
    }
    auto handler = observe::start_fd_log_handler(options);
    std::vector<std::unique_ptr<observe::LogHandler>> handlers;
    if (handler.ok()) {
      handlers.push_back(std::move(handler).value());
    } else {
      context.fail("no log: " + handler.error().to_string());
      return nullptr;
    }
    LogLevel level =
        log_level(getenv_or(prefix + "_LOG_LEVEL", "notice")).value_or(LogLevel::notice);
    return std::make_unique<observe::Logger>(level, std::move(handlers));
  }

  int run(RunContext& context) {
    std::optional<config::Configuration> configuration;
    const bool needs_file = !context.layout().config.empty() || !main().tree;
    if (needs_file) {
      std::string mistakes;
      configuration = load(context.layout().config, false, mistakes);
      if (!configuration) {
        context.fail(mistakes);
        return release::kExitUsage;
      }
    }
    std::vector<PlannedApplication> planned;
    std::string error;
    if (!plan(configuration ? &*configuration : nullptr, planned, error)) {
      context.fail(error);
      return release::kExitFailed;
    }
    auto logger = make_logger(context);
    if (logger == nullptr) return release::kExitFailed;
    int status =
        run_node(context, *logger, configuration ? &*configuration : nullptr, std::move(planned));
    logger->stop(kLogFlushMax);
    return status;
  }

  int run_node(RunContext& context, observe::Logger& logger,
               const config::Configuration* configuration,
               std::vector<PlannedApplication> planned) {
    SystemOptions options;
    options.log = &logger;
    System system(io::system_options(std::move(options)));
    if (configuration != nullptr && configuration->settings != nullptr) {
      for (const Application& application : applications_) {
        if (application.name == configuration->application && application.settings) {
          system.impl().attach(application.settings->hash, configuration->settings);
        }
      }
    }
    auto report = [&](const std::string& line) {
      log(logger, LogLevel::notice, "otp.application",
          [&](LogRecord& record) { record.message = line; });
    };
    internal::ControllerHooks hooks;
    hooks.report = [&](const std::string& line) {
      report(line);
      if (!started_) failure_ = line;
    };
    hooks.ready = [&](std::string details) { return ready(context, std::move(details)); };
    StopRequests stop;
    release::NodeCallbacks callbacks(context);
    callbacks.on_report(report);
    internal::add_tree_command(callbacks, system, main_name_);
    callbacks.on_stop([&] {
      logger.set_domain_level("otp.supervisor", LogLevel::info);  // says what it stops
      stop.ask(system);
    });
    int status = system.run(control, &stop, std::move(planned), std::move(hooks));
    if (!started_ && !failure_.empty()) context.fail(failure_);
    return status;
  }

  Async<void> ready(RunContext& context, std::string details) {
    started_ = true;
    if (!context.in_background()) {
      observe::TreeNode tree = co_await internal::live_tree(main_name_);
      std::string text = observe::tree_text(tree);
      if (!details.empty()) text += details + "\n";
      std::fputs(text.c_str(), stdout);
      std::fflush(stdout);
    }
    context.ready(details);
  }

  const std::string main_name_;
  const std::string main_version_;
  const std::vector<Application> applications_;
  bool started_ = false;
  std::string failure_;
};

}  // namespace

int run(std::vector<Application> applications, int argc, char** argv) {
  if (applications.empty()) {
    std::fprintf(stderr, "otp::run: no application\n");
    return release::kExitUsage;
  }
  std::string main_name = applications.front().name;
  std::string main_version = applications.front().version;
  auto ordered = start_order(std::move(applications));
  if (!ordered.ok()) {
    std::fprintf(stderr, "otp::run: %s\n", ordered.error().to_string().c_str());
    return release::kExitUsage;
  }
  Program program(main_name, main_version, std::move(ordered).value());
  return release::run_commands(program.hooks(), argc, argv);
}

}  // namespace otp
