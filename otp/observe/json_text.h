#pragma once

/// Writing JSON by hand: for lines and documents that are made in passing, in a hurry and bounded.
/// Not for reading JSON, nor for documents that somebody computes with (otp/base/json.h).

#include <cstdint>
#include <string>
#include <string_view>

namespace otp::observe {

/// Appends `text` as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD, so the
/// result is valid JSON whatever came in; it holds no line end.
void append_json_string(std::string* out, std::string_view text);

/// Whether `text` can stand in JSON as a number.
bool is_json_number(std::string_view text);

/// Writes objects and arrays and puts the commas.
///
///   JsonWriter json(&out);
///   json.begin_object().key("id").string("ledger").key("count").number(3).end_object();
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& string(std::string_view text);
  JsonWriter& number(int64_t value);
  JsonWriter& number(uint64_t value);
  /// REQUIRES: is_json_number(text).
  JsonWriter& raw_number(std::string_view text);
  JsonWriter& boolean(bool value);
  JsonWriter& null();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void before_value();

  std::string* out_;
  bool comma_ = false;  // a value stands before the next one
};

}  // namespace otp::observe
