#include "otp/supervision/partition_supervisor.h"

#include "otp/supervision/testing/pool_fixture.h"

using namespace otp;
using namespace otp::supervision_testing;

namespace {

Async<Partitions<Worker>> start_four() {
  trap_exit(true);
  co_return (co_await PartitionSupervisor<Worker>::start_link(four_workers())).or_exit();
}

}  // namespace

TEST_CASE("SUP-049 a key always finds the same partition", "[partition_supervisor]") {
  everywhere([]() -> Async<void> {
    auto pool = co_await start_four();
    co_await expect(4, "start pool.0,start pool.1,start pool.2,start pool.3");
    for (int64_t key : {0, 1, 5, -1, -7, 1'000'003}) {
      int wanted = static_cast<int>((key < 0 ? -key : key) % 4);
      int number = co_await otp::call(pool.server(key), Worker::Number{.set = wanted});
      require(number == wanted, "key " + std::to_string(key));
    }
    require(pool.number(INT64_MIN) == 0 && pool.number(uint64_t{7}) == 3, "the ends of the range");
    int used[4] = {};
    for (int i = 0; i < 400; ++i) {
      std::string key = "user" + std::to_string(i);
      ++used[pool.number(key)];
      require(pool.number(key) == pool.number(std::string_view(key)), "stable");
    }
    for (int each : used) require(each > 50, "text keys are spread");
    require(pool.number("stable") == Partitions<Worker>("other", 4).number("stable"), "by key");
  });
}

TEST_CASE("SUP-050 a partition that crashes is restarted under its number",
          "[partition_supervisor]") {
  everywhere([]() -> Async<void> {
    auto pool = co_await start_four();
    co_await events(4);
    Pid before = pool.server(6).pid(), other = pool.server(7).pid();
    crash("pool.2");
    co_await expect(2, "stop pool.2 crashed,start pool.2");
    Pid now = pool.server(6).pid();
    require(now && now != before && is_alive(now), "the new pid is found");
    require(pool.server(7).pid() == other, "the others are the same");
  });
}

TEST_CASE("SUP-051 partitions are listed by number", "[partition_supervisor]") {
  everywhere([]() -> Async<void> {
    auto pool = co_await start_four();
    auto rows = co_await Supervisor::which_children(pool.supervisor());
    require(rows.size() == 4 && rows[0].id == "3" && rows[3].id == "0", "ids");
    auto count = co_await Supervisor::count_children(pool.supervisor());
    require(count == ChildCount{.specs = 4, .active = 4, .supervisors = 0, .workers = 4}, "count");
  });
}
