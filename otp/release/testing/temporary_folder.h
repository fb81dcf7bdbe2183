#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace otp::release::testing {

/// A new folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    // Not TEST_TMPDIR: its path is long, which some tests must choose themselves, and other users
    // may not enter it.
    std::string pattern = "/tmp/otp-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp: " + pattern);
    path_ = std::filesystem::canonical(pattern);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// As far as it can be read: empty without such a file, or below /proc when its process ends.
inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // an iterator would throw on an error
  return text.str();
}

}  // namespace otp::release::testing
