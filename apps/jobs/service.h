#pragma once

#include "otp/application/application.h"

namespace jobs {

/// The job queue as an application; its tree is config/jobs.yaml.
otp::Application application();

}  // namespace jobs
