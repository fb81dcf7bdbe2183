// Generic server: names in a registry of the user's.
#include <catch2/catch.hpp>
#include <string>

#include "otp/behaviour/gen_server.h"
#include "otp/registry/registry.h"
#include "tests/conformance/worlds.h"

using namespace otp;
using namespace otp::testing;

namespace {

using Rooms = Registry<std::string>;

struct Get {
  using Reply = int;
};
struct Set {
  int number = 0;
};
class Room {
 public:
  int handle_call(Get) { return number_; }
  void handle_cast(Set msg) { number_ = msg.number; }

 private:
  int number_ = 1;
};

}  // namespace

TEST_CASE("GS-010 a server is reached by its name in a registry in every way", "[gs]") {
  everywhere([]() -> Async<void> {
    auto registry = (co_await Rooms::start_link("rooms", {})).or_exit();
    const ViaName lobby = Rooms::via(Name<Rooms>("rooms"), "lobby");
    StartOptions options;
    options.via = lobby;
    auto started = (co_await start<Room>({}, options)).or_exit();
    const Server<Room> room(lobby);
    require(room.pid() == started.pid(), "the name leads elsewhere");
    (void)cast(room, Set{7});
    require(co_await call(room, Get{}) == 7, "cast and call");
    auto twice = co_await start<Room>({}, options);
    require_reason(twice.error(), "{already_started," + started.pid().to_string() + "}");
    co_await otp::stop(room);
    require(!is_alive(started.pid()) && !room.pid(), "stop");
    require((co_await try_call(room, Get{})).error().is("noproc"), "nobody has the name");
    auto again = (co_await start<Room>({}, options)).or_exit();
    require(room.pid() == again.pid(), "the name leads to the next one");
    co_await otp::stop(room);
    unlink(registry.pid());
    co_await otp::stop(registry);
  });
}
