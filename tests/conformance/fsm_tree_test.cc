// A state machine in a tree that YAML describes: FSM-021.
#include <catch2/catch.hpp>

#include "otp/application/application.h"
#include "otp/behaviour/gen_statem.h"
#include "otp/config/check.h"
#include "otp/supervision/supervisor.h"
#include "otp/testing/simulator.h"

using namespace otp;

namespace {

struct Coin {};
struct Enter {
  using Reply = bool;
};

class Turnstile {
 public:
  using Behaviour = GenStatem;
  enum class State { locked, open };
  struct Args {
    int price = 1;
  };
  explicit Turnstile(Args args) : price_(args.price) {}
  State init() { return State::locked; }

  Transition<Turnstile> handle_event(In<State::locked>, Cast<Coin>) {
    if (++paid_ < price_) return keep_state();
    paid_ = 0;
    return next_state(State::open);
  }
  Transition<Turnstile> handle_event(In<State::locked>, Call<Enter> call) {
    return keep_state().reply(call, false);
  }
  Transition<Turnstile> handle_event(In<State::open>, Call<Enter> call) {
    return next_state(State::locked).reply(call, true);
  }

 private:
  int price_;
  int paid_ = 0;
};

constexpr const char* kTree = R"(application: metro
supervisor:
  children:
    - {id: gate, start: Turnstile, name: gate, args: {price: 2}}
)";

}  // namespace

TEST_CASE("FSM-021 a machine in a YAML tree starts with its arguments and its name", "[fsm]") {
  auto entries = servers<Turnstile>();
  config::ApplicationDecl decl;
  decl.name = "metro";
  for (const ServerEntry& entry : entries) decl.servers.push_back(entry.decl);
  auto checked = config::check(kTree, "metro.yaml", {decl}, {});
  INFO(checked.text());
  REQUIRE(checked.ok());
  Simulator simulator(1);
  std::string entered = simulator.run(
      [](SupervisorSpec spec) -> Async<std::string> {
        (co_await Supervisor::start_link(std::move(spec))).or_exit();
        Name<Turnstile> gate("gate");
        std::string text;
        for (int i = 0; i < 4; ++i) {
          text += co_await otp::call(gate, Enter()) ? "in " : "out ";
          cast(gate, Coin());
        }
        co_return text;
      },
      supervisor_spec(checked.configuration->supervisor, entries));
  CHECK(entered == "out out in out ");
}
