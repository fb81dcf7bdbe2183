#include "otp/observe/log_format.h"

#include <algorithm>

#include "otp/base/utf8.h"
#include "otp/observe/json_text.h"

namespace otp::observe {
namespace {

constexpr std::string_view kIndent = "    ";
constexpr size_t kLevelColumns = 8;  // `critical`; the one longer level, emergency, just sticks out

void append_padded(std::string* out, uint64_t value, size_t digits) {
  char text[20];
  for (size_t index = digits; index > 0; --index) {
    text[index - 1] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out->append(text, digits);
}

// Control characters as \x1b, bytes that are no UTF-8 as U+FFFD. `line_ends` are indented or, when
// false, escaped.
void append_printable(std::string* out, std::string_view text, bool line_ends) {
  constexpr char kHex[] = "0123456789abcdef";
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    size_t length = 1;
    if (first == '\n' && line_ends) {
      *out += '\n';
      if (text.size() > 1) *out += kIndent;
    } else if (first == '\n') {
      *out += "\\n";
    } else if (first == '\t') {
      *out += line_ends ? "\t" : "\\t";
    } else if (first < 0x20 || first == 0x7f) {
      *out += "\\x";
      *out += kHex[first >> 4];
      *out += kHex[first & 15];
    } else if (first < 0x80) {
      *out += text[0];
    } else {
      length = std::max<size_t>(utf8_sequence(text), 1);
      // U+0080 to U+009F are control characters too: terminals obey them.
      const bool control = length == 2 && first == 0xc2 && static_cast<uint8_t>(text[1]) < 0xa0;
      const bool valid = length > 1 && !control;
      out->append(valid ? text.substr(0, length) : kReplacementCharacter);
    }
    text.remove_prefix(length);
  }
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::any_of(value.begin(), value.end(), [](char letter) {
           return letter == ' ' || letter == '"' || letter == '=' || letter == '\\' ||
                  static_cast<unsigned char>(letter) < 0x20;
         });
}

void append_text_field(std::string* out, const LogField& field) {
  append_printable(out, field.key, false);
  *out += '=';
  if (!needs_quotes(field.value)) {
    append_printable(out, field.value, false);
    return;
  }
  *out += '"';
  std::string_view rest = field.value;
  while (!rest.empty()) {
    const size_t special = rest.find_first_of("\"\\");
    append_printable(out, rest.substr(0, special), false);
    if (special == std::string_view::npos) break;
    *out += '\\';
    *out += rest[special];
    rest.remove_prefix(special + 1);
  }
  *out += '"';
}

// Fields stand at the end of the message's first line, where they are found.
void append_text(std::string* out, const LogRecord& record) {
  append_time(out, record.time);
  *out += ' ';
  const std::string_view level = to_string(record.level);
  *out += level;
  out->append(level.size() < kLevelColumns ? kLevelColumns - level.size() : 0, ' ');
  *out += ' ';
  append_printable(out, record.domain, false);
  *out += ": ";
  std::string_view message = record.message;
  while (!message.empty() && message.back() == '\n') message.remove_suffix(1);
  const size_t line_end = message.find('\n');
  append_printable(out, message.substr(0, line_end), false);
  for (const LogField& field : record.fields) {
    *out += ' ';
    append_text_field(out, field);
  }
  *out += '\n';
  if (line_end == std::string_view::npos) return;
  *out += kIndent;
  append_printable(out, message.substr(line_end + 1), true);
  *out += '\n';
}

void append_json(std::string* out, const LogRecord& record) {
  JsonWriter json(out);
  std::string time;
  append_time(&time, record.time);
  json.begin_object().key("time").string(time);
  json.key("level").string(to_string(record.level));
  json.key("domain").string(record.domain);
  json.key("message").string(record.message);
  if (!record.fields.empty()) {
    json.key("fields").begin_object();
    for (auto field = record.fields.begin(); field != record.fields.end(); ++field) {
      // A key that comes again replaces the earlier one: readers differ about duplicates.
      const bool again = std::any_of(field + 1, record.fields.end(), [&](const LogField& later) {
        return later.key == field->key;
      });
      if (again) continue;
      json.key(field->key);
      if (field->is_number && is_json_number(field->value)) {
        json.raw_number(field->value);
      } else {
        json.string(field->value);
      }
    }
    json.end_object();
  }
  json.end_object();
  *out += '\n';
}

}  // namespace

void append_record(std::string* out, const LogRecord& record, LogFormat format) {
  format == LogFormat::text ? append_text(out, record) : append_json(out, record);
}

void append_time(std::string* out, std::chrono::system_clock::time_point time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto since_midnight = std::chrono::duration_cast<std::chrono::microseconds>(time - day);
  const auto micros = static_cast<uint64_t>(since_midnight.count());
  constexpr uint64_t kSecond = 1'000'000;
  append_padded(out, static_cast<uint64_t>(std::clamp(int{date.year()}, 0, 9999)), 4);
  *out += '-';
  append_padded(out, unsigned{date.month()}, 2);
  *out += '-';
  append_padded(out, unsigned{date.day()}, 2);
  *out += 'T';
  append_padded(out, micros / (3600 * kSecond), 2);
  *out += ':';
  append_padded(out, micros / (60 * kSecond) % 60, 2);
  *out += ':';
  append_padded(out, micros / kSecond % 60, 2);
  *out += '.';
  append_padded(out, micros % kSecond, 6);
  *out += 'Z';
}

}  // namespace otp::observe
