#include "apps/jobs/http_target.h"

#include <algorithm>
#include <cctype>

namespace jobs {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    decoded += c;
  }
  return decoded;
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

std::string_view cut(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

}  // namespace

std::optional<HttpTarget> HttpTarget::parse(std::string_view text) {
  if (text.find('#') != std::string_view::npos) return std::nullopt;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!starts_with_ignoring_case(text, scheme)) continue;
    text.remove_prefix(scheme.size());
    const size_t path = text.find_first_of("/?");
    if (path == 0) return std::nullopt;  // no host
    text = path == std::string_view::npos ? std::string_view("/") : text.substr(path);
    if (text.front() == '?') text = "/";
    break;
  }
  if (text.empty() || text.front() != '/') return std::nullopt;
  HttpTarget target;
  const size_t question = text.find('?');
  if (question != std::string_view::npos) target.query = text.substr(question + 1);
  std::string_view path =
      text.substr(1, question == std::string_view::npos ? question : question - 1);
  const bool is_root = path.empty();
  while (!is_root) {
    const bool last = path.find('/') == std::string_view::npos;
    const auto segment = decode(cut(path, '/'));
    if (!segment) return std::nullopt;
    target.segments.push_back(*segment);
    if (last) break;
  }
  return target;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_query(
    std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    std::string_view value = cut(query, '&');
    if (value.empty()) continue;
    const auto name = decode(cut(value, '='));
    const auto decoded = decode(value);
    if (!name || !decoded) return std::nullopt;
    parameters.emplace_back(*name, *decoded);
  }
  return parameters;
}

}  // namespace jobs
