#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "otp/application/application.h"
#include "otp/application/control.h"
#include "otp/behaviour/gen_server.h"
#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"

/// What the rows about applications share: servers that say when they come and go, and the two
/// worlds with a System of its own for each round, as the applications are attached to it.
namespace otp::testing {

/// What happened in this round, in order, as words with blanks between them.
class Events {
 public:
  static void clear() {
    std::lock_guard lock(mutex());
    words().clear();
  }
  static void add(const std::string& word) {
    std::lock_guard lock(mutex());
    words() += (words().empty() ? "" : " ") + word;
  }
  /// And forgets them.
  static std::string take() {
    std::lock_guard lock(mutex());
    return std::exchange(words(), {});
  }

 private:
  static std::mutex& mutex() {
    static std::mutex instance;
    return instance;
  }
  static std::string& words() {
    static std::string instance;
    return instance;
  }
};

struct Which {
  using Reply = std::string;
};
struct SpawnWhich {
  using Reply = std::string;
};
struct Fail {};

/// Says `+id` when it starts and `-id` when it is stopped in order.
class Witness {
 public:
  struct Args {
    std::string id{};
  };
  explicit Witness(Args args) : id_(std::move(args.id)) {
    trap_exit(true);
    Events::add("+" + id_);
  }
  void terminate(ExitReason reason) { Events::add("-" + id_ + (reason.is_shutdown() ? "" : "!")); }
  void handle_cast(Fail) { otp::exit(ExitReason::atom("broken")); }
  std::string handle_call(Which) { return application::get_application().value_or("none"); }
  /// Asks from a process of a process of this one whose parent is gone.
  Async<std::string> handle_call(SpawnWhich) {
    spawn(first, self());
    co_return (co_await receive<Answer>()).text;
  }

  struct Answer {
    std::string text;
  };

 private:
  static Async<void> first(Pid asker) {
    spawn(second, asker, self());
    co_return;
  }
  static Async<void> second(Pid asker, Pid parent) {
    const Reference end = monitor(parent);
    auto ours = [end](const Down& down) { return down.reference == end; };
    co_await receive<Down>(ours);
    Answer answer{application::get_application().value_or("none")};
    (void)otp::send(asker, std::move(answer));
  }
  std::string id_;
};

/// An application with two witnesses, `name1` and `name2`, registered by these names.
inline Application witnesses(const std::string& name, std::vector<std::string> needs = {}) {
  Application application;
  application.name = name;
  application.applications = std::move(needs);
  application.tree = [name] {
    SupervisorSpec spec;
    spec.intensity = 0;
    for (const char* number : {"1", "2"}) {
      const std::string id = name + number;
      spec.children.push_back(child<Witness>(id, {id}, {.name = id}));
    }
    return spec;
  };
  return application;
}

using Applications = std::vector<Application>;
using MakeApplications = Applications (*)();
/// Returns what it saw, as text.
using AppBody = Async<std::string> (*)();

inline constexpr int kAppSeeds = 100;
inline constexpr int kAppRounds = 50;

inline Async<std::string> with_controller(AppBody body) {
  Events::clear();
  auto controller = co_await application::start_controller();
  if (!controller.ok()) co_return "no controller: " + controller.error().to_string();
  co_return co_await body();
}

/// Runs `body` with these applications known and none of them running, in the Simulator under many
/// seeds and on two cores, and checks what it returns.
inline void check_apps(MakeApplications applications, AppBody body, const std::string& expected) {
  for (int seed = 1; seed <= kAppSeeds; ++seed) {
    Simulator simulator(static_cast<uint64_t>(seed));
    application::attach(simulator, applications());
    INFO("seed " << seed);
    REQUIRE(simulator.run(with_controller, body) == expected);
  }
  for (int round = 1; round <= kAppRounds; ++round) {
    System system({.cores = 2});
    application::attach(system, applications());
    INFO("on threads, round " << round);
    REQUIRE(system.run(with_controller, body) == expected);
  }
}

/// `ok`, or the reason.
template <class T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? "ok" : result.error().to_string();
}
inline std::string text_of(const Result<std::vector<std::string>>& names) {
  if (!names.ok()) return names.error().to_string();
  std::string text = "[";
  for (const std::string& name : names.value()) text += (text.size() == 1 ? "" : ",") + name;
  return text + "]";
}

inline std::string running() {
  std::string text = "[";
  for (const auto& one : application::which()) text += (text.size() == 1 ? "" : ",") + one.name;
  return text + "]";
}

}  // namespace otp::testing
