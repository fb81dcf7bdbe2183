#include "otp/base/bounded_writer.h"

#include "otp/base/term.h"
#include "otp/base/utf8.h"

namespace otp {
namespace {

void write_items(BoundedWriter& out, const std::vector<Term>& items, char open, char close) {
  const BoundedWriter::Nested nested(out);
  out.write(open);
  size_t count = 0;
  for (const Term& item : items) {
    if (out.full()) return;
    if (count > 0) out.write(',');
    if (nested.too_deep() || count == out.limits().elements_max) {
      out.write("...");
      break;
    }
    out.term(item);
    ++count;
  }
  out.write(close);
}

void write_escaped(BoundedWriter& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  while (!text.empty() && !out.full()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t sequence = utf8_sequence(text);
    const size_t length = std::max<size_t>(sequence, 1);
    if (first == '"' || first == '\\') {
      out.write('\\').write(text[0]);
    } else if (first == '\n') {
      out.write("\\n");
    } else if (first == '\t') {
      out.write("\\t");
    } else if (first < 0x20 || first == 0x7f || sequence == 0) {
      out.write("\\x").write(kHex[first >> 4]).write(kHex[first & 15]);
    } else {
      out.write(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
}

}  // namespace

BoundedWriter& BoundedWriter::write(std::string_view text) {
  if (full_) return *this;
  const size_t room = bytes_max_ - text_.size();
  if (text.size() > room) {
    full_ = true;
    text = text.substr(0, utf8_cut(text, room));
  }
  text_ += text;
  return *this;
}

BoundedWriter& BoundedWriter::quoted(std::string_view text) {
  const size_t kept = utf8_cut(text, limits_.string_bytes_max);
  write('"');
  write_escaped(*this, text.substr(0, kept));
  write('"');
  if (kept < text.size()) write("... (").number(text.size()).write(" bytes)");
  return *this;
}

BoundedWriter& BoundedWriter::term(const Term& term) {
  switch (term.kind()) {
    case Term::Kind::string: return quoted(term.text());
    case Term::Kind::atom:
      write(term.text().substr(0, utf8_cut(term.text(), limits_.string_bytes_max)));
      return *this;
    case Term::Kind::tuple: write_items(*this, term.items(), '{', '}'); return *this;
    case Term::Kind::list: write_items(*this, term.items(), '[', ']'); return *this;
    default: return write(term.to_string());
  }
}

void BoundedWriter::end_section(size_t outer_max, bool outer_full) {
  const bool cut = full_ && !outer_full;
  bytes_max_ = outer_max;
  full_ = outer_full;
  if (cut) write(kCutMark);
}

}  // namespace otp
