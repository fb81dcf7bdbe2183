#include "otp/application/run.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>

#include "otp/application/controller.h"
#include "otp/application/printer.h"
#include "otp/application/rpc.h"
#include "otp/application/tree.h"
#include "otp/base/enum_names.h"
#include "otp/config/check.h"
#include "otp/config/json_schema.h"
#include "otp/io/asio_poller.h"
#include "otp/observe/fd_log_handler.h"
#include "otp/observe/logger.h"
#include "otp/release/commands.h"
#include "otp/supervision/supervisor.h"

namespace otp {

namespace {

using release::CommandContext;
using release::RunContext;

constexpr auto kLogFlushMax = std::chrono::seconds(2);

std::string getenv_or(const std::string& name, const char* otherwise) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr || *value == '\0' ? otherwise : value;
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

Async<int> control(StopRequests* stop, std::vector<Application> applications,
                   internal::ControllerHooks hooks) {
  stop->listen();
  co_return co_await internal::control_applications(std::move(applications), std::move(hooks));
}

/// The program: its applications in start order, and what its commands do.
class Program {
 public:
  Program(std::string main_name, std::string main_version, std::vector<Application> applications,
          RunOptions options)
      : main_name_(std::move(main_name)),
        main_version_(std::move(main_version)),
        applications_(std::move(applications)),
        options_(std::move(options)) {}

  release::NodeHooks hooks() {
    release::NodeHooks hooks;
    hooks.name = main_name_;
    hooks.version = main_version_;
    hooks.run = [this](RunContext& context) { return run(context); };
    hooks.check = [this](const CommandContext& context) { return check(context); };
    hooks.run_dir_in_config = [this](const std::string& config) { return run_dir_in(config); };
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
    std::string error;
    const std::optional<std::string> text = config::read_file(path, error);
    if (!text) {
      mistakes = path + ": " + error;
      return std::nullopt;
    }
    auto result = config::check(*text, path, declarations(), config::process_environment(),
                                {.no_env = no_env, .providers = options_.providers});
    if (!result.ok()) {
      mistakes = result.text();
      mistakes.pop_back();  // its last line end
    }
    return std::move(result.configuration);
  }

  // For the commands that look for a node: a file with mistakes says nothing, as they do not start
  // one.
  release::Outcome<std::string> run_dir_in(const std::string& config) const {
    std::string mistakes;
    auto configuration = load(config, true, mistakes);
    return configuration ? configuration->run_dir : std::string();
  }

  int check(const CommandContext& context) const {
    std::string mistakes;
    const auto in_modes = moded(context.layout);
    if (!in_modes.ok()) return print_mistakes(modes_error(in_modes.error()));
    if (!load(context.layout.config, context.no_env, mistakes)) return print_mistakes(mistakes);
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

  // The applications as they take part in this release.
  Result<std::vector<Application>> moded(const release::Layout& layout) const {
    std::vector<std::pair<std::string, ApplicationType>> modes;
    for (const auto& [name, word] : layout.modes) {
      const auto& known = enum_names<ApplicationType>;
      auto mode = std::find_if(std::begin(known), std::end(known),
                               [&word = word](const auto& one) { return one.name == word; });
      if (mode == std::end(known)) return ExitReason::tagged("unknown_mode", Term::atom(word));
      modes.emplace_back(name, mode->value);
    }
    return with_modes(applications_, modes);
  }

  static std::string modes_error(const ExitReason& reason) {
    return "the applications of this release: " + reason.to_string();
  }

  // Gives the applications that are to be started their trees: of the configuration, or their own.
  static bool plan(const config::Configuration* configuration, std::vector<Application>& all,
                   std::string& error) {
    for (Application& application : all) {
      if (configuration != nullptr && configuration->application == application.name) {
        application.tree = [spec = supervisor_spec(configuration->supervisor,
                                                   application.servers)] { return spec; };
      } else if (application.type <= ApplicationType::temporary && !application.tree &&
                 !application.start && !application.servers.empty()) {
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
    auto planned = moded(context.layout());
    std::string error;
    if (!planned.ok()) {
      error = modes_error(planned.error());
    } else {
      (void)plan(configuration ? &*configuration : nullptr, planned.value(), error);
    }
    if (!error.empty()) {
      context.fail(error);
      return release::kExitFailed;
    }
    auto logger = make_logger(context);
    if (logger == nullptr) return release::kExitFailed;
    int status = run_node(context, *logger, configuration ? &*configuration : nullptr,
                          std::move(planned).value());
    printer_.finish(kLogFlushMax);
    logger->stop(kLogFlushMax);
    return status;
  }

  int run_node(RunContext& context, observe::Logger& logger,
               const config::Configuration* configuration, std::vector<Application> planned) {
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
    application::attach(system, planned);
    auto report = [&](const std::string& line) {
      log(logger, LogLevel::notice, "otp.application",
          [&](LogRecord& record) { record.message = line; });
    };
    internal::ControllerHooks hooks;
    hooks.report = report;
    hooks.failed = [&](const std::string& line) {
      if (!started_ && failure_.empty()) failure_ = line;  // what follows comes of it
    };
    hooks.ready = [&](std::string details) {
      return ready(context, tree_names(planned), std::move(details));
    };
    StopRequests stop;
    release::NodeCallbacks callbacks(context);
    callbacks.on_report(report);
    internal::add_tree_command(callbacks, system, tree_names(planned));
    internal::add_rpc_command(callbacks, system, planned);
    callbacks.on_stop([&] {
      // Says what it stops, unless the operator wants to hear of what goes wrong alone.
      if (logger.level() <= LogLevel::notice) {
        logger.set_domain_level(kStopLogDomain, LogLevel::info);
      }
      stop.ask(system);
    });
    int status = system.run(control, &stop, planned, std::move(hooks));
    if (!started_) context.fail(failure_.empty() ? "stopped before it was ready" : failure_);
    return status;
  }

  // Those with a tree of their own, the main one first.
  std::vector<std::string> tree_names(const std::vector<Application>& planned) const {
    std::vector<std::string> names{main_name_};
    for (const Application& application : planned) {
      const bool started = application.type <= ApplicationType::temporary;
      const bool has_tree = application.tree || application.start;
      if (started && has_tree && application.name != main_name_) names.push_back(application.name);
    }
    return names;
  }

  Async<void> ready(RunContext& context, std::vector<std::string> names, std::string details) {
    started_ = true;
    context.ready(details);
    if (context.in_background()) co_return;
    std::string text = co_await internal::live_trees(std::move(names), false);
    if (!details.empty()) text += details + "\n";
    printer_.print(std::move(text));
  }

  const std::string main_name_;
  const std::string main_version_;
  const std::vector<Application> applications_;
  const RunOptions options_;
  internal::Printer printer_;
  bool started_ = false;
  std::string failure_;
};

}  // namespace

int run(std::vector<Application> applications, int argc, char** argv, RunOptions options) {
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
  Program program(main_name, main_version, std::move(ordered).value(), std::move(options));
  return release::run_commands(program.hooks(), argc, argv);
}

}  // namespace otp
