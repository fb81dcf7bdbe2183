#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "otp/release/posix.h"
#include "otp/release/testing/temporary_folder.h"

namespace otp::release::testing {

/// How a program is run. The defaults give it next to nothing, as a service manager would.
struct RunOptions {
  std::string folder = {};                              ///< working directory; empty: this one
  std::map<std::string, std::string> environment = {};  ///< all of it
  std::vector<int> closed = {};                         ///< descriptors that are closed at exec
  bool errors_with_output = false;                      ///< 2>&1
  std::string input = "/dev/null";                      ///< file that is standard input
  std::function<void()> in_child = [] {};               ///< just before exec
};

struct Ran {
  int status = -1;  ///< exit status; 128 + n after signal n; -1: not over within 30 s, and killed
  std::string out;
  std::string err;
};

/// A running program whose output is read on demand. The destructor kills it.
class Running {
 public:
  Running(const std::vector<std::string>& argv, const RunOptions& options);
  ~Running();
  Running(const Running&) = delete;

  pid_t pid() const { return pid_; }
  /// Reads until `text` was seen on either stream. False: they ended first, or 30 s are over.
  bool wait_for_text(const std::string& text);
  /// Closes our ends, as a reader who has gone away.
  void stop_reading();
  /// Reads both streams to their end, then waits for the program.
  Ran wait();

 private:
  bool read_some(Clock::time_point deadline);

  pid_t pid_ = -1;
  UniqueFd out_fd_;
  UniqueFd err_fd_;
  std::string out_;
  std::string err_;
};

/// Runs a program to its end, and to the end of its streams: whoever inherits them is waited for,
/// too.
Ran run(const std::vector<std::string>& argv, const RunOptions& options = {});

/// The release `fake-1.0.0` with the fake service, unpacked in `<temporary>/<where>`.
class Installed {
 public:
  explicit Installed(const std::string& where = "r");
  /// Stops the node if there is one.
  ~Installed();
  Installed(const Installed&) = delete;

  std::string root() const { return root_; }
  std::string program() const { return root_ + "/bin/fake"; }
  std::string run_dir() const { return root_ + "/var"; }
  std::string log() const { return read_text(run_dir() + "/fake.log"); }
  /// The events of all nodes so far, joined by blanks.
  std::string events() const;
  const TemporaryFolder& folder() const { return folder_; }

  void configure(const std::string& lines) const { write_file(root_ + "/config/fake.yaml", lines); }
  Ran call(std::vector<std::string> words, const RunOptions& options = {}) const;
  int status_of(const std::string& word) const { return call({word}).status; }
  long pid() const;

 private:
  TemporaryFolder folder_;
  std::string root_;
};

/// Opens and closes a fifo at which the fake service waits.
void open_gate(const std::string& path);
std::string make_fifo(const std::string& path);

bool alive(long pid);
bool sanitized();

}  // namespace otp::release::testing
