#pragma once

#include "otp/base/atomic.h"

namespace otp::io::internal {
using otp::internal::acq_rel;
using otp::internal::acquire;
using otp::internal::relaxed;
using otp::internal::release;
}  // namespace otp::io::internal
