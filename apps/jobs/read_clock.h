#pragma once

#include "apps/jobs/clock.h"

namespace jobs {

/// The clocks as the calling process sees them: the machine's, or a Simulator's.
ClockReading read_clock();

}  // namespace jobs
