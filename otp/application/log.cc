#include "otp/application/log.h"

#include <utility>

#include "otp/runtime/runtime.h"
#include "otp/runtime/system_impl.h"

namespace otp {

void log(LogLevel level, std::string_view domain, std::string message) {
  internal::LibraryScope scope(internal::env());
  LogSink* sink = internal::env().system->log();
  if (sink == nullptr) return;
  log(*sink, level, domain, [&](LogRecord& record) { record.message = std::move(message); });
}

}  // namespace otp
