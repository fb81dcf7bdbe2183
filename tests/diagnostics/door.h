#pragma once

#include "otp/behaviour/gen_statem.h"

struct Enter {
  using Reply = bool;
  int code = 0;
};
struct Relock {};
struct Knock {};

class Door {
 public:
  using Behaviour = otp::GenStatem;
  enum class State { locked, open };
  State init() { return State::locked; }
  otp::Transition<Door> handle_event(otp::In<State::locked>, otp::Call<Enter> call) {
    return otp::next_state(State::open).reply(call, true);
  }
};
