// Registry: REG-001..010.
#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "otp/behaviour/gen_server.h"
#include "otp/registry/registry.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;
using namespace std::chrono_literals;

namespace {

using Names = Registry<std::string, int>;
const char* const kNames = "names";
Name<Names> names() { return Name<Names>(kNames); }

Async<Server<Names>> start_names(Keys keys, uint32_t partitions,
                                 std::vector<std::string> listeners = {}) {
  Names::Args args{keys, partitions, std::move(listeners)};
  co_return (co_await Names::start_link(kNames, std::move(args))).or_exit();
}
Async<void> stop_names(Server<Names> server) {
  unlink(server.pid());
  co_await stop(server, ExitReason::shutdown());
}

struct Leave {};

// Registers each of `keys` with 1, 2, ..., says so, and stays until it is told to leave.
struct Ready {};
Async<void> member(Pid parent, std::vector<std::string> keys) {
  int value = 0;
  for (const std::string& key : keys) (void)Names::register_key(names(), key, ++value);
  send(parent, Ready());
  co_await receive<Leave>();
}
Async<Pid> start_member(std::vector<std::string> keys) {
  Pid pid = spawn(member, self(), std::move(keys));
  co_await receive<Ready>();
  co_return pid;
}
Async<void> leave(Pid pid) {
  Reference down = monitor(pid);
  send(pid, Leave());
  (void)co_await down_of(down);
}

std::string text_of(const std::vector<Names::Entry>& entries) {
  std::string text;
  for (const Names::Entry& each : entries) text += std::to_string(each.value) + " ";
  return text;
}
std::string text_of(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  std::string text;
  for (const std::string& each : keys) text += each + " ";
  return text;
}

std::string refusal_of(const Result<void>& result) {
  return result.ok() ? "ok" : result.error().to_string();
}

// ---- The rows, for a number of partitions.

template <uint32_t kPartitions>
Async<void> registers_once() {
  auto server = co_await start_names(Keys::unique, kPartitions);
  const std::string taken = "{already_registered," + self().to_string() + "}";
  require_equal(refusal_of(Names::register_key(names(), "k", 1)), "ok");
  require_equal(refusal_of(Names::register_key(names(), "k", 2)), taken);
  auto other = spawn_monitor([taken]() -> Async<void> {
    require_equal(refusal_of(Names::register_key(names(), "k", 3)), taken);
    co_return;
  });
  require_reason(co_await down_of(other.second), "normal");
  require_equal(text_of(Names::lookup(names(), "k")), "1 ");
  auto changed = Names::update_value(names(), "k", [](int value) { return value + 6; });
  require(changed && changed->first == 7 && changed->second == 1, "update_value");
  require(!Names::update_value(names(), "other", [](int) { return 0; }), "updated nothing");
  require_equal(text_of(Names::lookup(names(), "k")), "7 ");
  co_await stop_names(server);
}

template <uint32_t kPartitions>
Async<void> forgets_the_dead() {
  auto server = co_await start_names(Keys::unique, kPartitions);
  Pid owner = co_await start_member({"a", "b", "c"});
  require(Names::count(names()) == 3, "not all registered");
  require_equal(text_of(Names::keys(names(), owner)), "a b c ");
  co_await leave(owner);
  require(Names::lookup(names(), "a").empty(), "the dead is found");
  require(Names::count(names()) == 0, "the dead counts");
  require(Names::keys(names(), owner).empty(), "the dead has keys");
  require_equal(refusal_of(Names::register_key(names(), "a", 9)), "ok");
  require_equal(text_of(Names::lookup(names(), "a")), "9 ");
  co_await stop_names(server);
}

template <uint32_t kPartitions>
Async<void> keeps_duplicates() {
  auto server = co_await start_names(Keys::duplicate, kPartitions);
  Pid one = co_await start_member({"k", "k", "x"});
  Pid two = co_await start_member({"k"});
  auto entries = Names::lookup(names(), "k");
  require(entries.size() == 3, "not all entries are kept");
  require_equal(text_of(Names::keys(names(), one)), "k k x ");
  auto values = Names::values(names(), "k", one);
  require(values.size() == 2 && values[0] == 1 && values[1] == 2, "other values");
  require(Names::count(names()) == 4, "count");
  require(Names::count_match(names(), "k", [](int value) { return value == 1; }) == 2, "match");
  auto all = Names::select(names(), [two](const std::string&, Pid pid, int) { return pid == two; });
  require(all.size() == 1 && all[0].key == "k" && all[0].value == 1, "select");
  co_await leave(one);
  require(Names::lookup(names(), "k").size() == 1, "entries of the dead");
  co_await leave(two);
  co_await stop_names(server);
}

template <uint32_t kPartitions>
Async<void> unregisters_its_own() {
  auto server = co_await start_names(Keys::duplicate, kPartitions);
  Pid other = co_await start_member({"k"});
  Names::unregister(names(), "k");  // there is none: fine
  (void)Names::register_key(names(), "k", 5);
  (void)Names::register_key(names(), "k", 6);
  (void)Names::register_key(names(), "x", 7);
  Names::unregister_match(names(), "k", [](int value) { return value == 5; });
  require(Names::values(names(), "k", self()) == std::vector<int>{6}, "another one went");
  Names::unregister(names(), "k");
  auto left = Names::lookup(names(), "k");
  require(left.size() == 1 && left[0].pid == other, "entries of others");
  require_equal(text_of(Names::keys(names(), self())), "x ");
  co_await leave(other);
  co_await stop_names(server);
}

template <uint32_t kPartitions>
Async<void> dispatches() {
  auto server = co_await start_names(Keys::duplicate, kPartitions);
  std::vector<Pid> members;
  for (int i = 0; i < 4; ++i) members.push_back(co_await start_member({"k"}));
  size_t calls = 0;
  std::vector<Pid> told;
  Names::dispatch(names(), "k", [&](const std::vector<Names::Entry>& entries) {
    ++calls;
    require(!entries.empty(), "called with nobody");
    for (const Names::Entry& each : entries) told.push_back(each.pid);
  });
  require(calls >= 1 && calls <= kPartitions, "not once a partition");
  std::sort(members.begin(), members.end());
  std::sort(told.begin(), told.end());
  require(told == members, "others were told");
  Names::dispatch(names(), "nobody", [](const auto&) { require(false, "called for nobody"); });
  for (Pid each : members) co_await leave(each);
  co_await stop_names(server);
}

struct Who {
  using Reply = int;
};
class Player {
 public:
  int handle_call(Who) { return 17; }
};

template <uint32_t kPartitions>
Async<void> names_servers() {
  auto server = co_await start_names(Keys::unique, kPartitions);
  ViaName ann = Names::via(names(), "ann", 3);
  StartOptions options{.via = ann};
  auto player = (co_await otp::start<Player>({}, options)).or_exit();
  auto second = co_await otp::start<Player>({}, options);
  require(!second.ok(), "two have one name");
  require_reason(second.error(), "{already_started," + player.pid().to_string() + "}");
  Server<Player> address(ann);
  require(co_await call(address, Who()) == 17, "the call went elsewhere");
  require(address == Server<Player>(Names::via(names(), "ann")), "one name, two addresses");
  require_equal(text_of(Names::lookup(names(), "ann")), "3 ");
  co_await stop(player);
  require(!address.pid(), "a dead pid is resolved");
  auto gone = co_await try_call(address, Who());
  require(!gone.ok() && gone.error().is("noproc"), "somebody answered");
  player = (co_await otp::start<Player>({}, options)).or_exit();
  require(address.pid() == player.pid(), "the next one is not found");
  co_await stop(player);
  co_await stop_names(server);
}

template <class F>
std::string argument_error(F f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("REG-001 a unique key is registered once, and the value stays", "[reg]") {
  everywhere(registers_once<1>);
}

TEST_CASE("REG-002 what a dead process had is gone", "[reg]") { everywhere(forgets_the_dead<1>); }

TEST_CASE("REG-002 nothing is left of 100,000 owners", "[reg]") {
  simulate(
      []() -> Async<void> {
        auto server = co_await start_names(Keys::unique, 4);
        for (int i = 0; i < 100'000; ++i) {
          Reference down = spawn_monitor([i]() -> Async<void> {
                             (void)Names::register_key(names(), "k" + std::to_string(i % 50), i);
                             co_return;
                           }).second;
          (void)co_await down_of(down);
        }
        co_await otp::sleep(1ms);
        require(Names::stored(names()) == 0, std::to_string(Names::stored(names())) + " left");
        co_await stop_names(server);
      },
      1);
}

TEST_CASE("REG-003 a unique key is the name of a server, and never that of a dead one", "[reg]") {
  everywhere(names_servers<1>);
}

TEST_CASE("REG-004 duplicate keys keep every entry", "[reg]") { everywhere(keeps_duplicates<1>); }

TEST_CASE("REG-005 unregister takes away the caller's entries under the key, no others", "[reg]") {
  everywhere(unregisters_its_own<1>);
}

TEST_CASE("REG-006 dispatch gives the entries to a function, unless there are none", "[reg]") {
  everywhere(dispatches<1>);
}

TEST_CASE("REG-007 keys compare exactly, and none has a meaning of its own", "[reg]") {
  everywhere(
      []() -> Async<void> {
        using Exact = Registry<std::variant<int, double, std::string>>;
        auto server = (co_await Exact::start_link("exact")).or_exit();
        Name<Exact> exact("exact");
        require(Exact::register_key(exact, 1).ok(), "1");
        require(Exact::register_key(exact, 1.0).ok(), "1.0 is taken for 1");
        require(Exact::register_key(exact, std::string("_")).ok(), "_");
        require(Exact::lookup(exact, 1).size() == 1, "1 is found as another key too");
        require(Exact::lookup(exact, std::string("_")).size() == 1, "_ matches other keys");
        require(Exact::lookup(exact, std::string("$1")).empty(), "$1 matches");
        unlink(server.pid());
        co_await stop(server, ExitReason::shutdown());
      },
      kFewRounds);
}

TEST_CASE("REG-008 listeners hear of entries, and need not be there", "[reg]") {
  everywhere([]() -> Async<void> {
    register_name("listener", self());
    auto server = co_await start_names(Keys::unique, 1, {"nobody", "listener"});
    (void)Names::register_key(names(), "k", 4);
    auto came = co_await receive<Names::Registered>();
    require(came.registry == kNames && came.key == "k" && came.pid == self() && came.value == 4,
            "another message");
    Names::unregister(names(), "k");
    auto went = co_await receive<Names::Unregistered>();
    require(went.registry == kNames && went.key == "k" && went.pid == self(), "another message");
    Pid other = co_await start_member({"o"});
    (void)co_await receive<Names::Registered>();
    co_await leave(other);
    went = co_await receive<Names::Unregistered>();
    require(went.key == "o" && went.pid == other, "the end of a process is not told");
    unregister_name("listener");
    co_await stop_names(server);
  });
}

TEST_CASE("REG-009 eight partitions behave as one does", "[reg]") {
  everywhere(registers_once<8>, 100);
  everywhere(forgets_the_dead<8>, 100);
  everywhere(keeps_duplicates<8>, 100);
  everywhere(unregisters_its_own<8>, 100);
  everywhere(dispatches<8>, 100);
  everywhere(names_servers<8>, 100);
}

TEST_CASE("REG-010 an unknown registry, and duplicate keys as names, are argument errors",
          "[reg]") {
  everywhere(
      []() -> Async<void> {
        require_equal(argument_error([] { (void)Names::lookup(names(), "k"); }),
                      "unknown registry: names");
        require_equal(argument_error([] { (void)Names::register_key(names(), "k", 1); }),
                      "unknown registry: names");
        auto server = co_await start_names(Keys::duplicate, 1);
        Server<Player> address(Names::via(names(), "k"));
        require(argument_error([&] { (void)address.pid(); }).find("duplicate") != std::string::npos,
                "a duplicate key was taken for a name");
        StartOptions options{.via = Names::via(names(), "k")};
        auto started = co_await otp::start<Player>({}, options);
        require(!started.ok(), "a server has a duplicate key as its name");
        using Others = Registry<int>;
        Name<Others> others(kNames);
        require(argument_error([&] { (void)Others::count(others); }) != "none", "another type");
        co_await stop_names(server);
      },
      kFewRounds);
}

TEST_CASE("REG-002 what the registry as a whole remembers goes with it", "[reg]") {
  everywhere(
      []() -> Async<void> {
        auto server = co_await start_names(Keys::unique, 1);
        Names::put_meta(names(), "color", Term::atom("red"));
        Names::put_meta(names(), "color", Term::atom("blue"));
        require(Names::meta(names(), "color") == Term::atom("blue"), "another value");
        Names::delete_meta(names(), "color");
        require(!Names::meta(names(), "color"), "still there");
        co_await stop_names(server);
        require(argument_error([] { (void)Names::meta(names(), "color"); }) != "none", "it lives");
      },
      kFewRounds);
}

TEST_CASE("REG-002 who has an entry ends with the registry", "[reg]") {
  everywhere([]() -> Async<void> {
    auto server = co_await start_names(Keys::unique, 1);
    Pid owner = co_await start_member({"a"});
    Reference down = monitor(owner);
    unlink(server.pid());
    exit(server.pid(), ExitReason::kill());
    require_reason(co_await down_of(down), "killed");
  });
}
