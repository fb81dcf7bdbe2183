#include "otp/config/check.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "otp/config/decode.h"
#include "otp/config/overrides.h"
#include "otp/config/parser.h"
#include "otp/config/required.h"
#include "otp/config/source.h"
#include "otp/config/tree.h"

namespace otp::config {
namespace {

struct TopKeys {
  Required<std::string> application;
  std::string run_dir;
};

const ApplicationDecl* find_application(const std::vector<ApplicationDecl>& applications,
                                        const Node& name, Diagnostics& diagnostics) {
  std::vector<std::string_view> names;
  for (const ApplicationDecl& application : applications) {
    if (application.name == name.text) return &application;
    names.push_back(application.name);
  }
  const std::string which = names.empty() ? "" : " (" + listed(names) + ")";
  diagnostics.expected(name.at, "an application of this program" + which, name.got(),
                       name.hidden ? "" : did_you_mean(name.text, names));
  return nullptr;
}

std::shared_ptr<const void> read_settings(const Node& root, const ApplicationDecl& application,
                                          Diagnostics& diagnostics) {
  const Node::Entry* given = root.find("settings");
  if (!application.settings) {
    if (given != nullptr) {
      diagnostics.expected(given->key_at, "no settings, as " + application.name + " has none",
                           given->value->got());
    }
    return nullptr;
  }
  Node none;
  none.kind = Node::Kind::map;
  none.at = root.at;
  std::shared_ptr<void> settings = application.settings->make();
  Decoder(diagnostics)
      .decode_record(given == nullptr ? none : *given->value, application.settings->describe(),
                     settings.get(), {"a", "setting", application.name});
  return settings;
}

Configuration read_root(NodePtr root, const std::vector<ApplicationDecl>& applications,
                        const Environment* environment, Diagnostics& diagnostics) {
  Configuration configuration;
  if (root->is_nothing()) {
    diagnostics.expected(root->at, "the keys application and supervisor",
                         root->text.empty() ? "an empty file" : root->text);
    return configuration;
  }
  TopKeys keys;
  Decoder(diagnostics)
      .decode_record(*root, describe<TopKeys>(), &keys, {"a", "key", "the file"},
                     {"imports", "settings", "supervisor"});
  configuration.run_dir = keys.run_dir;
  if (!root->is_map()) return configuration;
  const Node::Entry* supervisor = root->find("supervisor");
  if (supervisor == nullptr) {
    diagnostics.expected(root->at, "the key supervisor of the file (a mapping)", "none");
  }
  const Node::Entry* name = root->find("application");
  if (name == nullptr || !name->value->is_scalar() || name->value->unknown) return configuration;
  const ApplicationDecl* application = find_application(applications, *name->value, diagnostics);
  if (application == nullptr) return configuration;
  configuration.application = application->name;
  if (environment != nullptr) {
    root = apply_overrides(root, *application, *environment, diagnostics);
    supervisor = root->find("supervisor");
  }
  configuration.settings = read_settings(*root, *application, diagnostics);
  if (supervisor != nullptr) {
    configuration.supervisor = read_tree(*supervisor->value, *application, diagnostics);
  }
  return configuration;
}

// False: a provider failed, which result tells.
bool provide(const std::vector<Provider>& providers, std::string& yaml, CheckResult& result) {
  for (size_t i = 0; i < providers.size(); ++i) {
    Result<std::string> provided = providers[i](std::move(yaml));
    if (!provided.ok()) {
      Diagnostics diagnostics;
      diagnostics.expected({}, "a configuration from provider " + std::to_string(i + 1),
                           provided.error().to_string());
      result.diagnostics = diagnostics.sorted();
      return false;
    }
    yaml = std::move(provided).value();
  }
  return true;
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::string& error) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  std::string bytes;
  std::size_t count = 0;
  char block[65536];
  if (file != nullptr) {
    while ((count = std::fread(block, 1, sizeof block, file.get())) > 0) {
      bytes.append(block, count);
      if (bytes.size() > Source::kBytesMax) {
        error = "more than 16MiB";
        return std::nullopt;
      }
    }
    if (std::ferror(file.get()) == 0) return bytes;
  }
  error = strerrordesc_np(errno);  // in English in every locale
  return std::nullopt;
}

std::string CheckResult::text() const {
  std::string lines;
  for (const Diagnostic& diagnostic : diagnostics) lines += diagnostic.to_string(file) + "\n";
  return lines;
}

CheckResult check(std::string_view yaml, const std::string& file,
                  const std::vector<ApplicationDecl>& applications, const Environment& environment,
                  CheckOptions options) {
  const Environment* variables = options.no_env ? nullptr : &environment;
  CheckResult result;
  result.file = file;
  std::string provided(yaml);
  if (!options.no_env && !provide(options.providers, provided, result)) return result;
  Parsed parsed = parse(provided, variables);
  if (parsed.root != nullptr) {
    parsed.root = with_imports(parsed.root, file, variables, options.read, parsed.diagnostics);
  }
  if (parsed.root != nullptr) {
    Configuration configuration =
        read_root(parsed.root, applications, variables, parsed.diagnostics);
    if (parsed.diagnostics.empty()) result.configuration = std::move(configuration);
  }
  result.diagnostics = parsed.diagnostics.sorted();
  return result;
}

}  // namespace otp::config
