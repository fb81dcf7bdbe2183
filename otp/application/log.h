#pragma once

#include <string>
#include <string_view>

#include "otp/base/log.h"

namespace otp {

/// Says something in the log of the program; for one line that is cheap to make. What is dear goes
/// through the log() of otp/base/log.h, which asks first whether anybody listens.
///
///     otp::log(otp::LogLevel::notice, "bank.ledger", "the books are closed");
///
/// Takes:   domain: who speaks, see LogRecord; it must live as long as the program.
/// Threads: inside a process.
void log(LogLevel level, std::string_view domain, std::string message);

}  // namespace otp
