#include "otp/base/term.h"

#include <array>
#include <charconv>
#include <cstring>

#include "otp/base/atomic.h"

namespace otp {

struct Term::Node {
  Atomic<uint32_t> references{1};
  std::string text{};
  std::vector<Term> items{};
  Pid pid{};
  Reference reference{};
  std::shared_ptr<const TermObject> object{};
};

Term::Term(std::string text) : Term(Kind::string, new Node{.text = std::move(text)}) {}
Term::Term(Pid pid) : Term(Kind::pid, new Node{.pid = pid}) {}
Term::Term(Reference reference) : Term(Kind::reference, new Node{.reference = reference}) {}
Term::Term(std::shared_ptr<const TermObject> object)
    : Term(Kind::object, new Node{.object = std::move(object)}) {}

Term Term::atom(std::string text) { return Term(Kind::atom, new Node{.text = std::move(text)}); }
Term Term::tuple(std::vector<Term> items) {
  return Term(Kind::tuple, new Node{.items = std::move(items)});
}
Term Term::list(std::vector<Term> items) {
  return Term(Kind::list, new Node{.items = std::move(items)});
}

// relaxed: a copy is made from a live Term, so the count cannot reach zero meanwhile.
void Term::retain() const noexcept { bits_.node->references.fetch_add(1, internal::relaxed); }

void Term::drop() noexcept {
  // acq_rel: the last owner's delete comes after every other owner's reads.
  if (bits_.node->references.fetch_sub(1, internal::acq_rel) == 1) delete bits_.node;
}

bool Term::is_tagged(std::string_view tag, size_t size) const {
  return kind_ == Kind::tuple && items().size() == size && size > 0 && items()[0].is_atom(tag);
}

std::string_view Term::text() const {
  if (kind_ != Kind::atom && kind_ != Kind::string) return {};
  return heap_ ? std::string_view(bits_.node->text) : std::string_view(bits_.text);
}

Pid Term::pid() const { return kind_ == Kind::pid ? bits_.node->pid : Pid{}; }

Reference Term::reference() const {
  return kind_ == Kind::reference ? bits_.node->reference : Reference{};
}

const std::vector<Term>& Term::items() const {
  static const std::vector<Term> none;
  return kind_ == Kind::tuple || kind_ == Kind::list ? bits_.node->items : none;
}

const TermObject* Term::object() const {
  return kind_ == Kind::object ? bits_.node->object.get() : nullptr;
}

bool Term::equal(const Term& a, const Term& b) {
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Kind::none: return true;
    case Kind::atom:
    case Kind::string: return a.text() == b.text();
    case Kind::integer: return a.bits_.integer == b.bits_.integer;
    case Kind::number: return a.bits_.number == b.bits_.number;
    case Kind::pid: return a.pid() == b.pid();
    case Kind::reference: return a.reference() == b.reference();
    case Kind::tuple:
    case Kind::list: return a.bits_.node == b.bits_.node || a.items() == b.items();
    case Kind::object: return a.object()->equals(*b.object());
  }
  return false;
}

namespace {

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 40> buffer;  // to_chars: the same text in every locale
  auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

void append_items(std::string& out, const std::vector<Term>& items, char open, char close) {
  out += open;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ',';
    items[i].append_to(out);
  }
  out += close;
}

}  // namespace

void Term::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::none: out += "undefined"; break;
    case Kind::atom: out += text(); break;
    case Kind::string: append_quoted(out, text()); break;
    case Kind::integer: append_number(out, bits_.integer); break;
    case Kind::number: append_number(out, bits_.number); break;
    case Kind::pid: out += pid().to_string(); break;
    case Kind::reference: out += reference().to_string(); break;
    case Kind::tuple: append_items(out, items(), '{', '}'); break;
    case Kind::list: append_items(out, items(), '[', ']'); break;
    case Kind::object: out += object()->to_string(); break;
  }
}

std::string Term::to_string() const {
  std::string out;
  append_to(out);
  return out;
}

}  // namespace otp
