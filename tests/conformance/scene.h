#pragma once

#include "tests/conformance/worlds.h"

/// The two worlds for bodies that leave processes running: each round is a scene, a process of its
/// own, and what is linked to it ends with it. Then, as in worlds.h, nothing may be left.
namespace otp::scene {

using testing::Body;
using testing::kFewRounds;
using testing::kRounds;
using testing::now;
using testing::require;
using testing::simulated;

void simulate(Body body, uint64_t seeds = kRounds);
void on_threads(Body body, uint64_t rounds = kRounds);
void everywhere(Body body, uint64_t rounds = kRounds);

/// A time that is `milliseconds` in the Simulator and a thousandth of that on threads.
Duration ms(int64_t milliseconds);

}  // namespace otp::scene
