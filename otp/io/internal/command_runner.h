#pragma once

// For tests: runs commands of a guardian to their end with a plain poll loop.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "otp/io/child_pipes.h"
#include "otp/io/child_program.h"

namespace otp::io::internal {

struct Outcome {
  std::optional<ChildExit> exit = {};
  std::optional<SystemError> failed = {};
  Captured output = {};
  Captured error = {};
  std::optional<ProcessIdentity> process = {};
};

class CommandRunner {
 public:
  explicit CommandRunner(ChildPrograms::Options options = {});

  uint64_t start(std::vector<std::string> argv, ChildPipes::Options options = {});
  uint64_t start(const ChildCommand& command, ChildPipes::Options options = {});
  /// Polls until `done` says so. False when that took longer than 30 s.
  bool until(const std::function<bool()>& done);
  bool until_started(uint64_t id) {
    return until([&] { return outcomes[id].process || ended(id); });
  }
  bool ended(uint64_t id) { return outcomes[id].exit || outcomes[id].failed; }
  /// Runs one command to its end.
  Outcome run(std::vector<std::string> argv, ChildPipes::Options options = {});

  ChildPrograms programs;
  std::map<uint64_t, Outcome> outcomes;
  bool lost = false;

 private:
  void step();
  void handle(ChildEvent& event);

  std::map<uint64_t, ChildPipes> pipes_;
  uint64_t next_id_ = 1;
};

/// Waits until `done`, looking every few ms. False after 30 s.
bool eventually(const std::function<bool()>& done);

}  // namespace otp::io::internal
