#pragma once

#include <string>
#include <variant>

#include "apps/jobs/database.h"
#include "apps/jobs/job.h"
#include "apps/jobs/settings.h"
#include "otp/io/child_pipes.h"
#include "otp/io/child_program.h"

namespace jobs {

/// How one attempt ended.
struct AttemptEnd {
  otp::io::ChildExit exit = {};
  otp::io::Captured output = {};
  otp::io::Captured error = {};
  bool timed_out = false;  ///< it was killed for that
};

/// What to write down about an attempt that ended: the job's state follows the exit status (or the
/// timeout), never its pipes; what failed is queued again as long as `retries` allows.
///
/// Takes: job: as StartAttempt returned it.
FinishAttempt conclude(const KindSettings& settings, const Job& job, const AttemptEnd& end,
                       Moment now);

/// The same for a command that could not be started at all: it follows the retry rule, too.
FinishAttempt conclude(const KindSettings& settings, const Job& job,
                       const otp::io::SystemError& failed, Moment now);

/// The same for a command that was told to end because the service stops, and had not done its
/// work: it runs again, unless its kind says otherwise, and no retry is used up.
FinishAttempt interrupt(const KindSettings& settings, const Job& job, const AttemptEnd& end,
                        Moment now);

}  // namespace jobs
