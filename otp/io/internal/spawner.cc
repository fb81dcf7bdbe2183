#include "otp/io/internal/spawner.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "otp/io/child_server.h"
#include "otp/io/internal/asio_context.h"
#include "otp/io/internal/child_news.h"
#include "otp/io/internal/simulated_poller.h"
#include "otp/runtime/runtime_log.h"

namespace otp::io::internal {

using otp::internal::self_process;

namespace {

/// A guardian, and the waiting for its socket.
class GuardianSpawner final : public Spawner {
 public:
  explicit GuardianSpawner(AsioPoller& poller)
      : owner_{&self_process().system(), self_process().id()}, socket_(poller.context()) {}

  std::optional<SystemError> launch(const ChildPrograms::Options& options) override {
    auto launched = ChildPrograms::launch(options);
    if (auto* error = std::get_if<SystemError>(&launched)) return std::move(*error);
    programs_.emplace(std::get<ChildPrograms>(std::move(launched)));
    const int copy = ::fcntl(programs_->fd(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return SystemError::last("watch the guardian");
    socket_.assign(copy);
    return std::nullopt;
  }
  void begin() override {
    if (const auto& why = programs_->unlocked()) {
      otp::internal::log_runtime(
          owner_.system->log(), LogLevel::warning,
          "the next start will not wait for the end of this one's commands: " + why->to_string());
    }
    watch();
  }

  std::variant<Started, SystemError> start(uint64_t id, const ChildCommand& command) override {
    auto made = programs_->start(id, command);
    watch();
    if (auto* error = std::get_if<SystemError>(&made)) return std::move(*error);
    return Started{.streams = std::get<ChildStreams>(std::move(made))};
  }
  void signal(uint64_t id, int number) override {
    programs_->signal(id, number);
    watch();
  }
  std::vector<ChildEvent> on_ready() override {
    reading_ = false;
    writing_ = false;
    std::vector<ChildEvent> events = programs_->on_ready();
    watch();
    return events;
  }

 private:
  // A second message for the same event does no harm.
  void watch() {
    if (programs_->lost()) return;
    const auto ready = [owner = owner_](const boost::system::error_code& error) {
      if (!error) send_from_anywhere(owner, ChildServerReady{});
    };
    if (!std::exchange(reading_, true)) {
      socket_.async_wait(asio_descriptor::wait_read, ready);
    }
    if (programs_->wants_write() && !std::exchange(writing_, true)) {
      socket_.async_wait(asio_descriptor::wait_write, ready);
    }
  }

  using asio_descriptor = boost::asio::posix::stream_descriptor;
  const ProcessAddress owner_;
  std::optional<ChildPrograms> programs_;
  asio_descriptor socket_;
  bool reading_ = false;
  bool writing_ = false;
};

/// Commands that end when the script says so.
class ScriptedSpawner final : public Spawner {
 public:
  explicit ScriptedSpawner(SimulatedPrograms programs) : programs_(std::move(programs)) {}

  std::optional<SystemError> launch(const ChildPrograms::Options&) override {
    return std::nullopt;
  }
  void begin() override {}
  std::variant<Started, SystemError> start(uint64_t id, const ChildCommand& command) override {
    ScriptedChild child = programs_.play(command);
    if (child.fails) return *child.fails;
    const int64_t now = self_process().system().now();
    const auto pid = static_cast<pid_t>(100'000 + id);
    events_.emplace(now, ChildStarted{.id = id, .process = {.pid = pid, .start_ticks = id}});
    running_[id] = {
        events_.emplace(now + child.runs_for.count(), ChildEnded{.id = id, .exit = child.exit}),
        child.ignores_term};
    wake_at(now, now);
    wake_at(now + child.runs_for.count(), now);
    return Started{.scripted = std::move(child)};
  }

  void signal(uint64_t id, int number) override {
    const auto found = running_.find(id);
    if (found == running_.end() || (number == SIGTERM && found->second.ignores_term)) return;
    if (number != SIGTERM && number != SIGKILL && number != SIGINT) return;
    events_.erase(found->second.end);
    running_.erase(found);
    const int64_t now = self_process().system().now();
    events_.emplace(
        now, ChildEnded{.id = id, .exit = {.how = ChildExit::How::signalled, .code = number}});
    wake_at(now, now);
  }

  std::vector<ChildEvent> on_ready() override {
    std::vector<ChildEvent> due;
    const int64_t now = self_process().system().now();
    while (!events_.empty() && events_.begin()->first <= now) {
      ChildEvent event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      if (auto* ended = std::get_if<ChildEnded>(&event)) running_.erase(ended->id);
      due.push_back(std::move(event));
    }
    return due;
  }

 private:
  using Events = std::multimap<int64_t, ChildEvent>;
  struct Running {
    Events::iterator end;
    bool ignores_term = false;
  };
  static void wake_at(int64_t at, int64_t now) {
    otp::send_after(Duration(at - now), otp::self(), ChildServerReady{});
  }

  const SimulatedPrograms programs_;
  Events events_;  // by time
  std::map<uint64_t, Running> running_;
};

/// For a System without sockets.
class NoSpawner final : public Spawner {
 public:
  std::optional<SystemError> launch(const ChildPrograms::Options&) override {
    return refusal();
  }
  void begin() override {}
  std::variant<Started, SystemError> start(uint64_t, const ChildCommand&) override {
    return refusal();
  }
  void signal(uint64_t, int) override {}
  std::vector<ChildEvent> on_ready() override { return {}; }

 private:
  static SystemError refusal() { return {ENOTSUP, "start a guardian in this System"}; }
};

}  // namespace

std::unique_ptr<Spawner> make_spawner() {
  Poller* poller = self_process().system().core(0).poller.get();
  if (auto* simulated = dynamic_cast<SimulatedPoller*>(poller)) {
    return std::make_unique<ScriptedSpawner>(simulated->programs());
  }
  AsioPoller* asio = this_asio_poller();
  if (asio == nullptr) return std::make_unique<NoSpawner>();
  return std::make_unique<GuardianSpawner>(*asio);
}

unchecked<std::unique_ptr<Launched>> launch(std::unique_ptr<Spawner> spawner,
                                            const ChildPrograms::Options& options) {
  std::optional<SystemError> error = spawner->launch(options);
  return {std::make_unique<Launched>(Launched{std::move(spawner), std::move(error)})};
}

void shut_down(std::unique_ptr<Spawner> spawner) { spawner.reset(); }

}  // namespace otp::io::internal
