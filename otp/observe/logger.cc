#include "otp/observe/logger.h"

#include "otp/base/utf8.h"

namespace otp::observe {
namespace {

void cut(std::string* text, size_t bytes_max) {
  if (text->size() <= bytes_max) return;
  const size_t kept = utf8_cut(*text, bytes_max);
  std::string shorter = text->substr(0, kept);
  shorter += "... (" + std::to_string(text->size() - kept) + " more bytes)";
  *text = std::move(shorter);
}

void bound(LogRecord* record) {
  cut(&record->message, Logger::kMessageBytesMax);
  if (record->fields.size() > Logger::kFieldsMax) record->fields.resize(Logger::kFieldsMax);
  for (LogField& field : record->fields) {
    cut(&field.key, Logger::kFieldBytesMax);
    cut(&field.value, Logger::kFieldBytesMax);
  }
}

// Whether `name` is `domain` or above it.
bool covers(std::string_view name, std::string_view domain) {
  return domain.starts_with(name) && (domain.size() == name.size() || domain[name.size()] == '.');
}

}  // namespace

Logger::Logger(LogLevel level, std::vector<std::unique_ptr<LogHandler>> handlers)
    : handlers_(std::move(handlers)), level_(level) {}

bool Logger::set_domain_level(std::string_view domain, std::optional<LogLevel> level) {
  const uint8_t value = level.has_value() ? static_cast<uint8_t>(*level) : kInherit;
  std::lock_guard lock(domains_mutex_);
  const size_t count = domain_count_.load(std::memory_order_relaxed);
  for (size_t index = 0; index < count; ++index) {
    if (domains_[index].name != domain) continue;
    domains_[index].level.store(value, std::memory_order_relaxed);
    return true;
  }
  if (!level.has_value()) return true;
  if (count == kDomainsMax) return false;
  domains_[count].name = domain;
  domains_[count].level.store(value, std::memory_order_relaxed);
  domain_count_.store(count + 1, std::memory_order_release);  // publishes the name
  return true;
}

std::vector<Logger::DomainLevel> Logger::domain_levels() const {
  std::vector<DomainLevel> levels;
  const size_t count = domain_count_.load(std::memory_order_acquire);
  for (size_t index = 0; index < count; ++index) {
    const uint8_t level = domains_[index].level.load(std::memory_order_relaxed);
    if (level != kInherit) levels.push_back({domains_[index].name, static_cast<LogLevel>(level)});
  }
  return levels;
}

LogLevel Logger::level_of(std::string_view domain) const noexcept {
  LogLevel found = level();
  size_t longest = 0;
  const size_t count = domain_count_.load(std::memory_order_acquire);
  for (size_t index = 0; index < count; ++index) {
    const Domain& entry = domains_[index];
    const uint8_t own = entry.level.load(std::memory_order_relaxed);
    if (own == kInherit || entry.name.size() < longest || !covers(entry.name, domain)) continue;
    longest = entry.name.size();
    found = static_cast<LogLevel>(own);
  }
  return found;
}

bool Logger::enabled(LogLevel level, std::string_view domain) const noexcept {
  if (level < level_of(domain)) return false;
  for (const auto& handler : handlers_) {
    if (level >= handler->level()) return true;
  }
  return false;
}

void Logger::log(LogRecord&& record) noexcept {
  const LogLevel level = record.level;
  try {
    bound(&record);
    const auto shared = std::make_shared<const LogRecord>(std::move(record));
    for (const auto& handler : handlers_) {
      if (level >= handler->level()) handler->handle(shared);
    }
  } catch (const std::bad_alloc&) {
    lost_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Logger::flush(std::chrono::milliseconds timeout) noexcept {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  bool in_time = true;
  for (const auto& handler : handlers_) in_time = handler->flush(deadline) && in_time;
  return in_time;
}

bool Logger::stop(std::chrono::milliseconds timeout) noexcept {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  bool in_time = true;
  for (const auto& handler : handlers_) in_time = handler->stop(deadline) && in_time;
  return in_time;
}

LogStats Logger::stats() const noexcept {
  LogStats sum;
  sum.dropped_failed = lost_.load(std::memory_order_relaxed);
  for (const auto& handler : handlers_) {
    const LogStats stats = handler->stats();
    sum.written += stats.written;
    sum.dropped_full += stats.dropped_full;
    sum.dropped_burst += stats.dropped_burst;
    sum.dropped_failed += stats.dropped_failed;
  }
  return sum;
}

}  // namespace otp::observe
