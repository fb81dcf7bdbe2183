// EXPECT: handle_event must return otp::Transition of its class
#include "tests/diagnostics/door.h"

class Wrong {
 public:
  using Behaviour = otp::GenStatem;
  enum class State { only };
  State init() { return State::only; }
  bool handle_event(State, otp::Call<Enter>) { return true; }
};

otp::Async<> client(otp::Server<Wrong> wrong) { co_await otp::call(wrong, Enter{}); }
