#include "otp/release/layout.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "otp/base/json.h"
#include "otp/release/posix.h"

namespace otp::release {
namespace {

constexpr size_t kReleaseFileBytesMax = 64 * 1024;
constexpr size_t kNameLengthMax = 64;

std::string parent(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string joined(const std::string& folder, const std::string& name) {
  return folder == "/" ? "/" + name : folder + "/" + name;
}

/// Names become parts of file names and variables, so they are kept plain.
bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > kNameLengthMax || name[0] == '.' || name[0] == '-')
    return false;
  for (char c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '_' && c != '-' && c != '.') return false;
  }
  return true;
}

/// `base`: where a relative path counts from, if not from the working directory.
Outcome<std::string> absolute(const std::string& path, const char* what, const std::string& base) {
  if (path.empty() || path[0] == '/') return path;
  if (!base.empty() && base[0] == '/') return joined(base, path);
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof buffer) == nullptr || buffer[0] != '/') {
    return Outcome<std::string>::failure(std::string(what) + " '" + path +
                                         "' is relative, and there is no working directory");
  }
  return joined(buffer, path);
}

/// Fills the modes of a release's applications. Returns an error line or nothing.
std::string read_modes(const std::string& path, const json::object& root, Layout& layout) {
  const json::value* modes = root.if_contains("applications");
  if (modes == nullptr) return "";
  const std::string expected = path + ": expected an object 'applications' of strings, got ";
  if (!modes->is_object()) return expected + "another type";
  for (const auto& [name, mode] : modes->as_object()) {
    if (!mode.is_string()) return expected + "another type for '" + std::string(name) + "'";
    layout.modes.emplace_back(name, mode.as_string());
  }
  return "";
}

/// Fills name, version and config of a release. Returns an error line or nothing.
std::string read_release_file(const std::string& path, Layout& layout) {
  FileText file = read_file(path, kReleaseFileBytesMax);
  if (file.error_number != 0) return system_error("read", path, file.error_number);
  boost::system::error_code error;
  json::value root = json::parse(file.text, error);
  if (error || !root.is_object()) {
    return path + ": expected a JSON object, got " + (error ? error.message() : "another value");
  }
  for (auto [key, field] : {std::pair{"name", &layout.name}, std::pair{"version", &layout.version},
                            std::pair{"config", &layout.config}}) {
    const json::value* found = root.as_object().if_contains(key);
    if (found == nullptr && field == &layout.config) continue;
    if (found == nullptr || !found->is_string()) {
      return path + ": expected a string '" + key + "', got " +
             (found ? "another type" : "nothing");
    }
    *field = std::string(found->as_string());
  }
  if (!layout.config.empty() && layout.config[0] != '/') {
    layout.config = joined(layout.root, layout.config);
  }
  return read_modes(path, root.as_object(), layout);
}

/// The release around the executable, or nothing when it lies in none.
std::string find_release(Layout& layout) {
  std::string bin = parent(layout.executable);
  if (file_name(bin) != "bin") return "";
  std::string root = parent(bin);
  std::string manifest = joined(root, "release.json");
  struct stat info{};
  if (::stat(manifest.c_str(), &info) != 0) return "";
  layout.root = root;
  return read_release_file(manifest, layout);
}

std::string real_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string first_of(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

/// Settles the run directory. Returns an error line or nothing.
std::string find_run_dir(const LayoutRequest& request, const std::string& from_environment,
                         const std::string& base, Layout& layout) {
  std::string run_dir = first_of(request.run_dir_option, from_environment);
  if (run_dir.empty() && request.run_dir_in_config && !layout.config.empty()) {
    Outcome<std::string> configured = request.run_dir_in_config(layout.config);
    if (!configured.ok()) return configured.error;
    run_dir = *configured.value;
  }
  if (run_dir.empty() && layout.in_release()) run_dir = joined(layout.root, "var");
  Outcome<std::string> path = absolute(run_dir, "run directory", base);
  if (!path.ok()) return path.error;
  layout.run_dir = *path.value;
  while (layout.run_dir.size() > 1 && layout.run_dir.back() == '/') layout.run_dir.pop_back();
  return "";
}

}  // namespace

std::string executable_path() {
  char buffer[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  if (length > 0 && length < static_cast<ssize_t>(sizeof buffer) && buffer[0] == '/') {
    std::string path(buffer, static_cast<size_t>(length));
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): getauxval hands out addresses as numbers.
  const char* called = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (called == nullptr || ::realpath(called, buffer) == nullptr) return "";
  return buffer;
}

std::string environment_prefix(std::string_view name) {
  std::string prefix(name);
  for (char& c : prefix) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!kept) c = '_';
  }
  return prefix;
}

Outcome<Layout> find_layout(const LayoutRequest& request) {
  using Failed = Outcome<Layout>;
  Layout layout;
  layout.executable = first_of(request.executable, executable_path());
  std::string error = find_release(layout);
  if (!error.empty()) return Failed::failure(error);
  if (!layout.in_release()) {
    layout.name = first_of(request.program_name, file_name(layout.executable));
    layout.version = first_of(request.program_version, "unreleased");
  }
  if (!valid_name(layout.name)) {
    return Failed::failure("'" + layout.name +
                           "' cannot be the name of a release: expected up to " +
                           std::to_string(kNameLengthMax) + " letters, digits, '_', '-' and '.'");
  }

  auto environment = request.environment ? request.environment : real_environment;
  std::string prefix = environment_prefix(layout.name);
  const std::string base = environment("BUILD_WORKING_DIRECTORY");
  std::string named = first_of(request.config_option, environment(prefix + "_CONFIG"));
  if (!named.empty()) {
    Outcome<std::string> config = absolute(named, "configuration file", base);
    if (!config.ok()) return Failed::failure(config.error);
    layout.config = *config.value;
  }
  error = find_run_dir(request, environment(prefix + "_RUN_DIR"), base, layout);
  if (!error.empty()) return Failed::failure(error);
  return layout;
}

std::string create_run_dir(const Layout& layout) {
  const std::string& path = layout.run_dir;
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) == 0) {
      ::chmod(part.c_str(), 0700);  // mkdir's mode went through the umask
    } else if (errno != EEXIST) {
      int error = errno;
      struct stat info{};
      bool there = ::stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
      if (!there) {
        return system_error("create the run directory", part, error) + " (set " +
               environment_prefix(layout.name) + "_RUN_DIR to a folder that can be written)";
      }
    }
    if (end == std::string::npos) break;
  }
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return system_error("use the run directory", path, errno);
  if (!S_ISDIR(info.st_mode)) return system_error("use the run directory", path, ENOTDIR);
  return "";
}

}  // namespace otp::release
