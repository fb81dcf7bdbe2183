#pragma once

#include <exception>
#include <string>
#include <utility>

#include "otp/base/term.h"

namespace otp {

/// Why a process ended: what linked and monitoring processes, supervisors and callers see.
///
/// OTP's reasons, with OTP's effects: `normal`, `shutdown` and {shutdown,T} are quiet ends,
/// everything else is abnormal and makes a report; `kill` is the request that cannot be trapped and
/// its victim's reason is `killed`; `noproc`: there was no such process. An exception that left a
/// callback gives the pair {{Type,What},Stack}. Any other Term is a reason too.
///
/// Copying costs a pointer (and nothing but two words for the atoms). Threads: any.
class ExitReason {
 public:
  ExitReason() : term_(Term::literal("normal")) {}
  ExitReason(Term term) : term_(std::move(term)) {}

  static ExitReason atom(const char* literal) { return ExitReason(Term::literal(literal)); }
  static ExitReason normal() { return {}; }
  static ExitReason shutdown() { return atom("shutdown"); }
  static ExitReason shutdown(Term detail) {
    return ExitReason(Term::tuple({Term::literal("shutdown"), std::move(detail)}));
  }
  static ExitReason kill() { return atom("kill"); }
  static ExitReason killed() { return atom("killed"); }
  static ExitReason noproc() { return atom("noproc"); }
  static ExitReason noconnection() { return atom("noconnection"); }
  static ExitReason timeout() { return atom("timeout"); }
  /// {{Type,What},Stack}: an exception that nobody caught. `stack` is diagnostic data of free form.
  /// What is thrown and no std::exception, as `throw 42;`, gives {{nocatch,{Type,Text}},Stack}.
  static ExitReason exception(std::string type, std::string what, Term stack) {
    return ExitReason(Term::tuple(
        {Term::tuple({Term::atom(std::move(type)), Term(std::move(what))}), std::move(stack)}));
  }
  /// {tag,detail}
  static ExitReason tagged(const char* tag, Term detail) {
    return ExitReason(Term::tuple({Term::literal(tag), std::move(detail)}));
  }

  bool is(std::string_view atom) const { return term_.is_atom(atom); }
  bool is_normal() const { return is("normal"); }
  bool is_kill() const { return is("kill"); }
  bool is_shutdown() const { return is("shutdown") || term_.is_tagged("shutdown", 2); }
  /// Anything but `normal`, `shutdown` and {shutdown,T}: reported, and a transient child restarts.
  bool is_abnormal() const { return !is_normal() && !is_shutdown(); }

  const Term& term() const { return term_; }
  std::string to_string() const { return term_.to_string(); }
  friend bool operator==(const ExitReason&, const ExitReason&) = default;

 private:
  Term term_;
};

/// Thrown to end the calling process with a reason, as Erlang's exit/1; what otp::call throws when
/// the call cannot be answered. Catch it only to plan for that outcome; otherwise let it end the
/// process.
class Exit : public std::exception {
 public:
  explicit Exit(ExitReason reason) : reason_(std::move(reason)) {}
  const ExitReason& reason() const noexcept { return reason_; }
  const char* what() const noexcept override {
    if (text_.empty()) text_ = reason_.to_string();
    return text_.c_str();
  }

 private:
  ExitReason reason_;
  mutable std::string text_;
};

}  // namespace otp
