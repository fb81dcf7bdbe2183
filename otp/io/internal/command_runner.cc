#include "otp/io/internal/command_runner.h"

#include <poll.h>

#include <stdexcept>
#include <utility>

namespace otp::io::internal {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(30);
constexpr int kLookEveryMs = 5;

ChildPrograms launched(ChildPrograms::Options options) {
  auto result = ChildPrograms::launch(std::move(options));
  if (const auto* error = std::get_if<SystemError>(&result)) {
    throw std::runtime_error(error->to_string());
  }
  return std::get<ChildPrograms>(std::move(result));
}

}  // namespace

CommandRunner::CommandRunner(ChildPrograms::Options options)
    : programs(launched(std::move(options))) {}

uint64_t CommandRunner::start(std::vector<std::string> argv, ChildPipes::Options options) {
  return start({.argv = std::move(argv), .env = {"PATH=/usr/bin:/bin"}}, std::move(options));
}

uint64_t CommandRunner::start(const ChildCommand& command, ChildPipes::Options options) {
  const uint64_t id = next_id_++;
  auto result = programs.start(id, command);
  if (auto* error = std::get_if<SystemError>(&result)) {
    outcomes[id].failed = *error;
  } else {
    pipes_.emplace(id, ChildPipes(std::get<ChildStreams>(std::move(result)), std::move(options)));
  }
  return id;
}

bool CommandRunner::until(const std::function<bool()>& done) {
  const auto deadline = Clock::now() + kPatience;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    step();
  }
  return true;
}

Outcome CommandRunner::run(std::vector<std::string> argv, ChildPipes::Options options) {
  const uint64_t id = start(std::move(argv), std::move(options));
  until([&] { return ended(id); });
  return outcomes[id];
}

void CommandRunner::step() {
  std::vector<pollfd> waits;
  if (!programs.lost()) {
    const auto events = static_cast<short>(POLLIN | (programs.wants_write() ? POLLOUT : 0));
    waits.push_back({.fd = programs.fd(), .events = events, .revents = 0});
  }
  for (const auto& [id, pipes] : pipes_) {
    for (const pollfd& entry : pipes.poll_set()) waits.push_back(entry);
  }
  ::poll(waits.data(), waits.size(), kLookEveryMs);
  for (auto& [id, pipes] : pipes_) pipes.on_ready(waits);
  for (ChildEvent& event : programs.on_ready()) handle(event);
}

void CommandRunner::handle(ChildEvent& event) {
  if (const auto* started = std::get_if<ChildStarted>(&event)) {
    outcomes[started->id].process = started->process;
  } else if (const auto* failed = std::get_if<ChildFailed>(&event)) {
    outcomes[failed->id].failed = failed->error;
    pipes_.erase(failed->id);
  } else if (const auto* ended = std::get_if<ChildEnded>(&event)) {
    ChildPipes& pipes = pipes_.at(ended->id);
    pipes.finish();
    outcomes[ended->id].exit = ended->exit;
    outcomes[ended->id].output = pipes.output();
    outcomes[ended->id].error = pipes.error();
    pipes_.erase(ended->id);
  } else {
    lost = true;
  }
}

bool eventually(const std::function<bool()>& done) {
  const auto deadline = Clock::now() + kPatience;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    ::poll(nullptr, 0, kLookEveryMs);
  }
  return true;
}

}  // namespace otp::io::internal
