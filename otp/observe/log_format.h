#pragma once

/// Log records as text: one line each for people, or one JSON object per line for machines.
///
///   2026-11-30T14:15:09.123456Z error   otp.supervisor: child ended id=ledger reason=timeout
///       further lines of the message are indented
///   {"time":"2026-11-30T14:15:09.123456Z","level":"error","domain":"otp.supervisor",
///    "message":"child ended","fields":{"id":"ledger","reason":"timeout"}}       (in one line)
///
/// Both depend on nothing but the record: no locale, no time zone. Times are UTC. Whatever bytes a
/// record holds, a text line cannot be mistaken for two records (control characters are escaped)
/// and a JSON line is valid JSON.

#include <chrono>
#include <string>

#include "otp/base/log.h"

namespace otp::observe {

enum class LogFormat { text, json };

/// Appends the record with its line end.
void append_record(std::string* out, const LogRecord& record, LogFormat format);

/// `2026-11-30T14:15:09.123456Z`; years are those of the Gregorian calendar, four digits.
void append_time(std::string* out, std::chrono::system_clock::time_point time);

}  // namespace otp::observe
