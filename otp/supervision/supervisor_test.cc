#include "otp/supervision/supervisor.h"

#include "otp/supervision/testing/sup_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;
using namespace std::chrono_literals;

TEST_CASE("R-002 a restart that fails is tried again and counted", "[supervisor]") {
  simulate(
      []() -> Async<void> {
        auto trouble = std::make_shared<Trouble>();
        auto sup = co_await start(
            {.intensity = 3,
             .children = {worker("steady"), worker("flaky", {}, {.trouble = trouble})}});
        co_await expect(2, "start steady,start flaky");
        Pid steady = pid_of("steady");
        trouble->failures = 2;
        crash("flaky");
        co_await expect(2, "stop flaky crashed,start flaky");
        require(pid_of("steady") == steady, "steady keeps its pid");
        // (c) the window forgets: three restarts more.
        co_await otp::sleep(6s);
        for (int i = 0; i < 3; ++i) {
          crash("flaky");
          co_await expect(2, "stop flaky crashed,start flaky");
        }
        crash("flaky");
        co_await expect(2, "stop flaky crashed,stop steady shutdown");
        require(!is_alive(sup.pid()) || co_await down_of(sup.pid()) == ExitReason::shutdown(),
                "ends");
      },
      kFewRounds);
}

TEST_CASE("R-002 a child that never starts again ends its supervisor", "[supervisor]") {
  everywhere(
      []() -> Async<void> {
        for (Strategy strategy :
             {Strategy::one_for_one, Strategy::rest_for_one, Strategy::one_for_all}) {
          auto trouble = std::make_shared<Trouble>();
          auto sup = co_await start(
              {.strategy = strategy,
               .intensity = 3,
               .children = {worker("flaky", {}, {.trouble = trouble}), worker("steady")}});
          co_await expect(2, "start flaky,start steady");
          trouble->failures = 1'000'000;
          crash("flaky");
          co_await expect(2, "stop flaky crashed,stop steady shutdown");
          auto exit = co_await receive<ExitMessage>();
          require(exit.from == sup.pid() && exit.reason == ExitReason::shutdown(), "shutdown");
          require(trouble->starts == 4, "three attempts, the fourth is one too many");
        }
      },
      kFewRounds);
}

TEST_CASE("a failed restart in a group leaves those after it for the next attempt",
          "[supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto trouble = std::make_shared<Trouble>();
        co_await start(
            {.strategy = Strategy::one_for_all,
             .intensity = 10,
             .children = {worker("a"), worker("b", {}, {.trouble = trouble}), worker("c")}});
        co_await expect(3, "start a,start b,start c");
        trouble->failures = 1;
        crash("c");
        co_await expect(7,
                        "stop c crashed,stop b shutdown,stop a shutdown,start a,"
                        "stop a shutdown,start a,start b");
        co_await expect(1, "start c");
      },
      kFewRounds);
}

TEST_CASE("backoff: pauses grow between restarts and begin anew after a long run", "[supervisor]") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Simulator simulator(seed);
    simulator.run(
        [](Simulator* clock) -> Async<void> {
          auto sup =
              co_await start(only(worker("a", {.backoff = {.min = 100ms, .max = 1s}}), 1000));
          co_await expect(1, "start a");
          auto pause = [](Simulator* at) -> Async<Duration> {
            Duration before = at->now();
            crash("a");
            co_await expect(2, "stop a crashed,start a");
            co_return at->now() - before;
          };
          for (auto wanted : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
            Duration got = co_await pause(clock);
            require(got >= wanted && got < wanted + 5ms, "pause " + std::to_string(got.count()));
          }
          co_await otp::sleep(1500ms);
          require(co_await pause(clock) < 105ms, "a run longer than max begins anew");
          // A client may cut the pause short.
          crash("a");
          co_await expect(1, "stop a crashed");
          require(co_await listing(sup) == "a restarting", "listed");
          require((co_await Supervisor::terminate_child(sup, "a")).ok(), "terminate");
          require((co_await Supervisor::restart_child(sup, "a")).ok(), "restart");
          co_await expect(1, "start a");
          co_await otp::sleep(60s);
          require(!co_await receive<Event>(after(0s)), "the planned restart is void");
        },
        &simulator);
  }
}

TEST_CASE("backoff does not weaken the intensity", "[supervisor]") {
  simulate(
      []() -> Async<void> {
        auto sup = co_await start({.intensity = 2,
                                   .period = 3600s,
                                   .children = {worker("a", {.backoff = {.min = 1s, .max = 8s}})}});
        co_await expect(1, "start a");
        for (int i = 0; i < 2; ++i) {
          crash("a");
          co_await expect(2, "stop a crashed,start a");
        }
        crash("a");
        require(co_await down_of(sup.pid()) == ExitReason::shutdown(), "the third");
      },
      kFewRounds);
}

TEST_CASE("a naughty child that unlinks itself is stopped all the same", "[supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start({.children = {worker("a"), worker("b")}});
        co_await expect(2, "start a,start b");
        for (std::string id : {"a", "b"}) {
          Server<Worker> server{Name<Worker>(id)};
          (void)otp::cast(server, Worker::UnlinkParent{sup.pid()});
          (void)co_await otp::call(server, Worker::Number{});
        }
        Pid b = pid_of("b");
        require((co_await Supervisor::terminate_child(sup, "b")).ok(), "no hang");
        require(!is_alive(b), "gone");
        require(co_await stop_sup(sup.pid()) == ExitReason::shutdown(), "the other one too");
        co_await expect(2, "stop b shutdown,stop a shutdown");
      },
      kFewRounds);
}

TEST_CASE("plain processes are supervised and acknowledge their start", "[supervisor]") {
  everywhere(
      []() -> Async<void> {
        auto sup = co_await start({});
        auto ready = plain_child(
            "ready", {.name = "ready"},
            [](InitAck ack, int n) -> Async<void> {
              co_await otp::yield();
              require(n == 7, "arguments");
              ack.ready();
              co_await otp::sleep(infinity);
            },
            7);
        auto first = co_await Supervisor::start_child(sup, ready);
        require(first.ok() && first.value().pid == pid_of("ready"), "started");
        otp::exit(pid_of("ready"), ExitReason::kill());
        co_await down_of(first.value().pid);
        require(co_await listing(sup) == "ready running", "restarted with its arguments");

        auto taken = co_await Supervisor::start_child(
            sup, plain_child("taken", {.name = "ready"}, []() -> Async<void> { co_return; }));
        require(taken.error() == ExitReason::tagged("already_started", Term(pid_of("ready"))),
                "name");
        auto fails = co_await Supervisor::start_child(
            sup, plain_child("fails", {}, [](InitAck ack) -> Async<void> {
              co_await otp::yield();
              ack.fail(ExitReason::atom("no_port"));
            }));
        require(fails.error().is("no_port"), "init_fail");
        auto throws = co_await Supervisor::start_child(
            sup, plain_child("throws", {}, [](InitAck) -> Async<void> {
              throw std::runtime_error("early");
              co_return;
            }));
        require(throws.error().to_string().find("early") != std::string::npos, "throws");
        auto done = co_await Supervisor::start_child(
            sup, plain_child("done", {.restart = Restart::temporary},
                             []() -> Async<void> { co_return; }));
        require(done.ok(), "one without an ack counts as started at once");
      },
      kFewRounds);
}

TEST_CASE("children whose arguments cannot be copied are made again for each start",
          "[supervisor]") {
  everywhere(
      []() -> Async<void> {
        struct Owner {
          struct Args {
            std::unique_ptr<int> number;
            Pid witness;
          };
          explicit Owner(Args args) {
            (void)otp::send(args.witness, Event{"owner " + std::to_string(*args.number)});
          }
        };
        auto spec = child<Owner>(
            "owner", [witness = self()] { return Owner::Args{std::make_unique<int>(5), witness}; });
        auto sup = co_await start(only(spec));
        co_await expect(1, "owner 5");
        auto rows = co_await Supervisor::which_children(sup);
        otp::exit(rows[0].pid, ExitReason::kill());
        co_await expect(1, "owner 5");
      },
      kFewRounds);
}

TEST_CASE("R-024 a system with supervised timers and sleepers ends at once", "[supervisor]") {
  auto before = std::chrono::steady_clock::now();
  {
    SystemOptions options;
    options.cores = 2;
    System system(options);
    system.run([]() -> Async<void> {
      auto sup =
          co_await start({.children = {worker("a", {.backoff = {.min = 3600s, .max = 3600s}}),
                                       worker("b", {}, {.stubborn = true})}});
      co_await expect(2, "start a,start b");
      crash("a");
      co_await expect(1, "stop a crashed");
      for (int i = 0; i < 1000; ++i) (void)send_after(1h, sup.pid(), Event{"late"});
    });
  }
  CHECK(std::chrono::steady_clock::now() - before < 10s);
}
