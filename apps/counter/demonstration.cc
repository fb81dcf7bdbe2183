#include "apps/counter/demonstration.h"

#include <cstdio>
#include <memory>

namespace counter {

namespace {

struct Done {};

otp::Async<void> add_to_shared(std::shared_ptr<std::atomic<int64_t>> shared, int64_t increments,
                               otp::Pid main) {
  for (int64_t i = 0; i < increments; ++i) {
    int64_t seen = shared->load(std::memory_order_relaxed);
    co_await otp::yield();
    shared->store(seen + 1, std::memory_order_relaxed);
  }
  (void)otp::send(main, Done{});
}

otp::Async<void> add_to_server(otp::Server<Counter> server, int64_t increments, otp::Pid main) {
  for (int64_t i = 0; i < increments; ++i) co_await Counter::increment(server, 1);
  (void)otp::send(main, Done{});
}

}  // namespace

otp::Async<Tally> count_shared(int64_t writers, int64_t increments) {
  auto shared = std::make_shared<std::atomic<int64_t>>(0);
  for (int64_t i = 0; i < writers; ++i) {
    otp::spawn_link(add_to_shared, shared, increments, otp::self());
  }
  for (int64_t i = 0; i < writers; ++i) co_await otp::receive<Done>();
  co_return Tally{writers * increments, shared->load(std::memory_order_relaxed)};
}

otp::Async<Tally> count_with_server(otp::Server<Counter> server, int64_t writers,
                                    int64_t increments) {
  int64_t before = co_await Counter::get(server);
  for (int64_t i = 0; i < writers; ++i) {
    otp::spawn_link(add_to_server, server, increments, otp::self());
  }
  for (int64_t i = 0; i < writers; ++i) co_await otp::receive<Done>();
  int64_t after = co_await Counter::get(server);
  co_return Tally{writers * increments, after - before};
}

otp::Async<otp::CastResult> Demonstration::handle_continue(Run) {
  Tally shared = co_await count_shared(args_.writers, args_.increments);
  std::puts(shared.line("shared").c_str());
  Tally actor = co_await count_with_server(args_.counter, args_.writers, args_.increments);
  std::puts(actor.line("actor").c_str());
  std::fflush(stdout);
  co_return otp::stop(otp::ExitReason::normal());
}

}  // namespace counter
