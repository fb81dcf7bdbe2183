#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/base/pid.h"

namespace otp {

/// What a Term may hold that is not plain data: it can be printed and compared, no more.
/// Objects are immutable once they are in a Term, since terms travel between processes.
class TermObject {
 public:
  virtual ~TermObject() = default;
  virtual std::string to_string() const = 0;  ///< within the text of a term: short, in one line
  virtual std::string details() const { return to_string(); }  ///< all of it, in several lines
  virtual bool equals(const TermObject& other) const { return this == &other; }
};

/// An immutable value made of atoms, numbers, strings, pids, references, tuples and lists.
///
/// Exit reasons, error details and reports are terms: they can be compared, printed in Erlang's
/// notation, copied cheaply (a pointer) and sent to any process. Application data are plain
/// structs, not terms.
///
///     Term why = Term::tuple({Term::atom("failed_to_start_child"), Term::atom("ledger"), reason});
///     why.to_string();  // {failed_to_start_child,ledger,timeout}
///
/// Threads: any; a Term is immutable and its reference count is atomic.
class Term {
 public:
  enum class Kind : uint8_t {
    none,
    atom,
    integer,
    number,
    string,
    pid,
    reference,
    tuple,
    list,
    object
  };

  Term() noexcept = default;
  Term(int64_t value) noexcept : kind_(Kind::integer) { bits_.integer = value; }
  Term(int value) noexcept : Term(static_cast<int64_t>(value)) {}
  Term(double value) noexcept : kind_(Kind::number) { bits_.number = value; }
  Term(std::string text);
  Term(const char* text) : Term(std::string(text)) {}
  Term(Pid pid);
  Term(Reference reference);
  Term(std::shared_ptr<const TermObject> object);
  Term(const Term& other) noexcept : bits_(other.bits_), kind_(other.kind_), heap_(other.heap_) {
    if (heap_) retain();
  }
  Term(Term&& other) noexcept : bits_(other.bits_), kind_(other.kind_), heap_(other.heap_) {
    other.kind_ = Kind::none;
    other.heap_ = false;
  }
  Term& operator=(Term other) noexcept {
    std::swap(bits_, other.bits_);
    std::swap(kind_, other.kind_);
    std::swap(heap_, other.heap_);
    return *this;
  }
  ~Term() {
    if (heap_) drop();
  }

  /// An atom whose text lives as long as the program (a string literal); costs no allocation.
  static Term literal(const char* text) noexcept {
    Term term;
    term.kind_ = Kind::atom;
    term.bits_.text = text;
    return term;
  }
  /// An atom with a text of its own.
  static Term atom(std::string text);
  static Term tuple(std::vector<Term> items);
  static Term list(std::vector<Term> items);

  Kind kind() const { return kind_; }
  bool is_atom(std::string_view text) const { return kind_ == Kind::atom && this->text() == text; }
  /// True for a tuple of `size` items whose first is the atom `tag`.
  bool is_tagged(std::string_view tag, size_t size) const;

  std::string_view text() const;  ///< of an atom or a string, else empty
  int64_t integer() const { return kind_ == Kind::integer ? bits_.integer : 0; }
  double number() const { return kind_ == Kind::number ? bits_.number : 0; }
  Pid pid() const;                         ///< the default Pid unless kind() is pid
  Reference reference() const;             ///< likewise
  const std::vector<Term>& items() const;  ///< of a tuple or a list, else empty
  const TermObject* object() const;        ///< null unless kind() is object

  /// Erlang's notation: atoms bare, strings in double quotes, tuples {a,b}, lists [a,b].
  std::string to_string() const;
  void append_to(std::string& out) const;

  friend bool operator==(const Term& a, const Term& b) { return equal(a, b); }

 private:
  struct Node;
  union Bits {
    const char* text;
    int64_t integer;
    double number;
    Node* node;
  };
  explicit Term(Kind kind, Node* node) noexcept : kind_(kind), heap_(true) { bits_.node = node; }
  static bool equal(const Term& a, const Term& b);
  void retain() const noexcept;
  void drop() noexcept;

  Bits bits_{nullptr};
  Kind kind_ = Kind::none;
  bool heap_ = false;  // bits_.node is a counted Node
};

}  // namespace otp
