#include "otp/config/diagnostic.h"

#include <algorithm>
#include <utility>

namespace otp::config {
namespace {

constexpr std::size_t kShownBytesMax = 60;
constexpr std::size_t kComparedBytesMax = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

bool is_plain_word(std::string_view text) {
  if (text.empty() || text.size() > kShownBytesMax) return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == 0x7f;
  });
}

void append_escaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (byte < 0x20 || byte == 0x7f) {
    out += "\\x";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  } else {
    out += c;
  }
}

/// `size`, or a little less so that no UTF-8 sequence of `text` is cut.
std::size_t whole_characters(std::string_view text, std::size_t size) {
  while (size > 0 && size < text.size() &&
         (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  return size;
}

}  // namespace

void Diagnostics::expected(const Position& at, std::string_view expected, std::string_view got,
                           std::string_view hint) {
  std::string text = "expected ";
  text.append(expected).append(", got ").append(got).append(hint);
  add({at, std::move(text)});
}

void Diagnostics::add(Diagnostic diagnostic) {
  if (kept_.size() == kKeptMax) {
    ++dropped_;
  } else {
    kept_.push_back(std::move(diagnostic));
  }
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> all = kept_;
  std::sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    if (a.at < b.at || b.at < a.at) return a.at < b.at;
    return a.text < b.text;
  });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return !(a.at < b.at) && !(b.at < a.at) && a.text == b.text;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  if (dropped_ > 0) {
    all.push_back({all.back().at, "expected no more mistakes, got " + std::to_string(dropped_) +
                                      " others that are not shown"});
  }
  return all;
}

std::string did_you_mean(std::string_view got, const std::vector<std::string_view>& words) {
  if (got.size() > kComparedBytesMax) return {};
  std::string_view nearest;
  std::size_t best = kComparedBytesMax;
  for (const std::string_view word : words) {
    if (word.size() > kComparedBytesMax) continue;
    const std::size_t changes = distance(got, word);
    if (changes < best && changes <= std::max<std::size_t>(1, word.size() / 3) &&
        changes < word.size()) {
      best = changes;
      nearest = word;
    }
  }
  if (nearest.empty()) return {};
  return "; did you mean " + std::string(nearest) + "?";
}

std::string shown(std::string_view text) {
  if (is_plain_word(text)) return std::string(text);
  const std::size_t size = whole_characters(text, std::min(text.size(), kShownBytesMax));
  std::string out = "\"";
  for (const char c : text.substr(0, size)) append_escaped(out, c);
  out += size < text.size() ? "…\"" : "\"";
  return out;
}

std::string listed(const std::vector<std::string_view>& words, std::size_t most) {
  std::string out;
  const std::size_t count = std::min(words.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  if (count < words.size()) out += " and " + std::to_string(words.size() - count) + " more";
  return out;
}

}  // namespace otp::config
