// Generic server: calls and their answers.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

struct Number {
  using Reply = int;
  int number = 0;
};
struct Slow {
  using Reply = int;
  Duration time{};
};
struct Never {
  using Reply = int;
};
struct Keep {
  using Reply = int;
};
struct Give {
  int number = 0;
};
struct Delegate {
  using Reply = int;
};
struct Append {
  int number = 0;
};
struct Numbers {
  using Reply = std::vector<int>;
};
struct End {
  using Reply = int;
  ExitReason reason;
};
struct Yourself {
  using Reply = std::string;
};
struct Done {
  Pid from{};
  ExitReason reason{};
};

class Worker {
 public:
  /// Overlapping handlers would see each other here.
  Async<int> handle_call(Number msg) {
    if (busy_) otp::exit(ExitReason::atom("overlap"));
    busy_ = true;
    co_await yield();
    busy_ = false;
    co_return msg.number;
  }
  Async<int> handle_call(Slow msg) {
    co_await otp::sleep(msg.time);
    numbers_.push_back(-1);
    co_return 1;
  }
  CallResult<int> handle_call(Never) { return noreply(); }
  CallResult<int> handle_call(Keep, From<int> from) {
    kept_.push_back(from);
    return noreply();
  }
  void handle_cast(Give msg) {
    for (const auto& from : kept_) otp::reply(from, msg.number);
    kept_.clear();
  }
  CallResult<int> handle_call(Delegate, From<int> from) {
    spawn([](From<int> to) { otp::reply(to, 77); }, from);
    return noreply();
  }
  void handle_cast(Append msg) { numbers_.push_back(msg.number); }
  std::vector<int> handle_call(Numbers) { return numbers_; }
  CallResult<int> handle_call(End msg) { return otp::stop(msg.reason); }
  Async<std::string> handle_call(Yourself) {
    std::string reasons;
    try {
      co_await otp::call(Server<Worker>(self()), Number{1});
    } catch (const Exit& exit) {
      reasons += first_of(exit.reason()).to_string();
    }
    auto by_name = co_await otp::try_call(Name<Worker>("worker"), Number{1});
    co_return reasons + " " + by_name.error().to_string();
  }

 private:
  bool busy_ = false;
  std::vector<From<int>> kept_;
  std::vector<int> numbers_;
};

Async<Server<Worker>> start_worker() {
  co_return (co_await start<Worker>({}, {.name = "worker"})).or_exit();
}

/// What a call of `message` exits with.
template <class M>
Async<ExitReason> reason_of_call(Server<Worker> server, M message, Timeout timeout = infinity) {
  try {
    (void)co_await call(server, std::move(message), {.timeout = timeout});
  } catch (const Exit& exit) {
    co_return exit.reason();
  }
  throw std::logic_error("it was answered");
}

/// A process that calls and tells `main` with what its call exited.
template <class M>
Pid caller_of(Server<Worker> server, M message) {
  return spawn(
      [](Server<Worker> to, M request, Pid main) -> Async<void> {
        Done done{self(), co_await reason_of_call(to, std::move(request))};
        (void)otp::send(main, std::move(done));
      },
      server, std::move(message), self());
}

}  // namespace

TEST_CASE("GS-012 handlers never overlap and every caller gets its own answers in order", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    for (int i = 0; i < 100; ++i) {
      spawn(
          [](Server<Worker> to, int first, Pid main) -> Async<void> {
            for (int number = first; number < first + 2; ++number) {
              (void)cast(to, Append{number});
              const int answer = co_await call(to, Number{number}, {.timeout = infinity});
              if (answer != number) otp::exit(ExitReason::atom("another_answer"));
            }
            (void)otp::send(main, Done{});
          },
          server, i * 1000, self());
    }
    for (int i = 0; i < 100; ++i) (void)co_await receive<Done>();
    std::vector<int> seen(100, 0);
    for (int number : co_await call(server, Numbers{})) {
      require(number % 1000 == seen.at(number / 1000)++, "a client's requests out of order");
    }
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-013 a caller without a timeout of its own gives up after five seconds", "[gs]") {
  simulate([]() -> Async<void> {
    auto server = co_await start_worker();
    Duration before = now();
    auto given_up = co_await try_call(server, Never{});
    require_reason(given_up.error(), "timeout");
    require(now() - before == 5s, "not after five seconds");
    before = now();
    try {
      (void)co_await call(server, Never{});
      require(false, "answered");
    } catch (const Exit& exit) {
      require_equal(first_of(exit.reason()).to_string(), "timeout");
    }
    require(now() - before == 5s, "not after five seconds");
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-014 a call that times out exits with timeout and the call; the server goes on",
          "[gs]") {
  simulate([]() -> Async<void> {
    auto server = co_await start_worker();
    const Duration before = now();
    const ExitReason reason = co_await reason_of_call(server, Slow{1s}, 100ms);
    require(now() - before == 100ms, "not after 100 ms");
    require(first_of(reason).is_atom("timeout"), reason.to_string());
    const std::string text = reason.to_string();
    require(text.find("gen_server,call,[" + server.pid().to_string()) != std::string::npos, text);
    require(text.find("Slow,100]") != std::string::npos, text);
    // This one is queued behind the slow one, times out, and is handled later all the same.
    (void)co_await reason_of_call(server, Slow{2s}, 100ms);
    require((co_await call(server, Numbers{})).size() == 2, "both were handled");
    require(now() - before == 3s, "after the time they took");
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-015 an answer that comes after the timeout is never seen", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    for (const Duration timeout : {Duration(0), Duration(20us), Duration(60us)}) {
      auto result = co_await try_call(server, Number{3}, {.timeout = timeout});
      require(result.ok() ? result.value() == 3 : result.error().is("timeout"), "another result");
    }
    auto late = co_await try_call(server, Keep{}, {.timeout = 1us});
    require_reason(late.error(), "timeout");
    (void)cast(server, Give{8});
    require((co_await call(server, Numbers{})).empty(), "it goes on");
    co_await require_silence();
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-016 a caller hears at once why the server ended while it waited", "[gs]") {
  everywhere([]() -> Async<void> {
    for (const char* why : {"normal", "shutdown", "broken"}) {
      auto server = co_await start_worker();
      // In the handler; kept for later; queued behind it.
      Pid kept = caller_of(server, Keep{});
      Pid never = caller_of(server, Never{});
      (void)co_await call(server, Numbers{});
      const ExitReason reason = co_await reason_of_call(server, End{ExitReason::atom(why)});
      require(first_of(reason).is_atom(why), reason.to_string());
      require(reason.to_string().find("gen_server,call,[" + server.pid().to_string()) !=
                  std::string::npos,
              reason.to_string());
      for (int i = 0; i < 2; ++i) {
        Done done = co_await receive<Done>();
        require(done.from == kept || done.from == never, "another caller");
        // One that was not yet there when the server ended hears noproc.
        const Term first = first_of(done.reason);
        require(first.is_atom(why) || first.is_atom("noproc"), done.reason.to_string());
      }
    }
    co_await require_silence();
  });
  everywhere([]() -> Async<void> {
    // Killed while a call is being handled and another one is queued.
    auto server = co_await start_worker();
    Pid callers[] = {caller_of(server, Slow{1h}), caller_of(server, Slow{1h})};
    (void)cast(server, Append{1});
    co_await yield();
    otp::exit(server.pid(), ExitReason::kill());
    const Duration before = now();
    for (int i = 0; i < 2; ++i) {
      Done done = co_await receive<Done>();
      require(done.from == callers[0] || done.from == callers[1], "another caller");
      const Term first = first_of(done.reason);
      require(first.is_atom("killed") || first.is_atom("noproc"), done.reason.to_string());
    }
    require(!simulated() || now() == before, "they waited");
  });
}

TEST_CASE("GS-017 a call of a server that is gone exits with noproc at once", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    co_await otp::stop(server);
    const Duration before = now();
    const ExitReason dead = co_await reason_of_call(server, Number{1});
    require(first_of(dead).is_atom("noproc"), dead.to_string());
    require(dead.to_string().find(",{gen_server,call,[" + server.pid().to_string()) !=
                std::string::npos,
            dead.to_string());
    const ExitReason unknown =
        co_await reason_of_call(Server<Worker>(Name<Worker>("worker")), Number{1});
    require(first_of(unknown).is_atom("noproc"), unknown.to_string());
    require(!simulated() || now() == before, "it waited");
  });
}

TEST_CASE("GS-018 a server that calls itself, by pid or by name, is told so", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    require_equal(co_await call(server, Yourself{}), "calling_self calling_self");
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-020 a kept request is answered later and others are served meanwhile", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    for (int i = 0; i < 3; ++i) {
      spawn(
          [](Server<Worker> to, Pid main) -> Async<void> {
            Number got{co_await call(to, Keep{}, {.timeout = infinity})};
            (void)otp::send(main, got);
          },
          server, self());
    }
    int answered = 0;
    for (int number = 10; answered < 3; ++number) {
      require(co_await call(server, Number{number}) == number, "others are served");
      (void)cast(server, Give{9});
      while (auto got = co_await receive<Number>(after(0s))) {
        require(got->number == 9, "another answer");
        ++answered;
      }
    }
    co_await require_silence();
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-021 another process may answer in the server's place", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    require(co_await call(server, Delegate{}) == 77, "the answer of the other process");
    require(co_await call(server, Number{2}) == 2, "and then the server's own");
    co_await require_silence();
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-022 a cast to nobody is no error and does not wait", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    co_await otp::stop(server);
    const Duration before = now();
    (void)cast(server, Append{1});
    (void)cast(Name<Worker>("worker"), Append{2});
    (void)cast(Server<Worker>(), Append{3});
    require(!simulated() || now() == before, "it waited");
    co_await require_silence();
  });
}

TEST_CASE("GS-023 the casts of a client are handled in order and before its next call", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    for (int i = 0; i < 20; ++i) (void)cast(server, Append{i});
    const std::vector<int> numbers = co_await call(server, Numbers{});
    require(numbers.size() == 20, std::to_string(numbers.size()) + " of 20 before the call");
    for (int i = 0; i < 20; ++i) require(numbers[i] == i, "out of order");
    co_await otp::stop(server);
  });
}

TEST_CASE("GS-027 a stop in handle_call is what its caller exits with", "[gs]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_worker();
    Reference reference = monitor(server.pid());
    const ExitReason detail = ExitReason::tagged("shutdown", Term::atom("done"));
    const ExitReason reason = co_await reason_of_call(server, End{detail}, 1h);
    require(first_of(reason) == detail.term(), reason.to_string());
    require_reason(co_await down_of(reference), "{shutdown,done}");
  });
}
