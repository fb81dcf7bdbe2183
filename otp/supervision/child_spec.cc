#include "otp/supervision/child_spec.h"

#include <unordered_set>

#include "otp/base/enum_names.h"

namespace otp {

namespace internal {

namespace {

template <class E>
bool is_word(E value) {
  return !enum_name(value).empty();
}

// {invalid_restart_type,7}: an enumeration that holds a value without a word.
template <class E>
Term invalid(const char* what, E value) {
  return Term::tuple({Term::literal(what), Term(static_cast<int64_t>(value))});
}

Term invalid_time(const char* what, Duration time) {
  return Term::tuple({Term::literal(what), Term(time.count())});
}

// {bad_combination,[{auto_shutdown,never},{significant,true}]}
Term bad_combination(const char* key, const char* value) {
  return Term::tuple(
      {Term::literal("bad_combination"),
       Term::list({Term::tuple({Term::literal(key), Term::literal(value)}),
                   Term::tuple({Term::literal("significant"), Term::literal("true")})})});
}

std::optional<Term> check_backoff(const Backoff& backoff) {
  if (backoff.min < Duration(0)) return invalid_time("invalid_backoff_min", backoff.min);
  if (backoff.max < backoff.min) return invalid_time("invalid_backoff_max", backoff.max);
  if (!(backoff.factor >= 1)) {
    return Term::tuple({Term::literal("invalid_backoff_factor"), Term(backoff.factor)});
  }
  return std::nullopt;
}

}  // namespace

std::optional<Term> check_child_spec(const ChildSpec& spec, AutoShutdown auto_shutdown,
                                     bool needs_id) {
  if (needs_id && spec.id.empty()) return Term::literal("missing_id");
  if (spec.start == nullptr) return Term::literal("missing_start");
  if (!is_word(spec.restart)) return invalid("invalid_restart_type", spec.restart);
  if (spec.shutdown && spec.shutdown->is_negative()) {
    return Term::tuple({Term::literal("invalid_shutdown"), Term::literal("negative")});
  }
  if (!is_word(spec.type)) return invalid("invalid_child_type", spec.type);
  if (!is_word(spec.mailbox.on_full)) return invalid("invalid_on_full", spec.mailbox.on_full);
  if (spec.type == ChildType::supervisor && spec.mailbox.letters_max != 0) {
    // What a supervisor is told it must hear: a restart would be lost with the message.
    return Term::tuple({Term::literal("invalid_mailbox"), Term::literal("supervisor")});
  }
  if (spec.significant && spec.restart == Restart::permanent) {
    return bad_combination("restart", "permanent");
  }
  if (spec.significant && auto_shutdown == AutoShutdown::never) {
    return bad_combination("auto_shutdown", "never");
  }
  return check_backoff(spec.backoff);
}

ChildSpec make_child_spec(std::string id, StartFunction start, const ChildOptions& options) {
  ChildSpec spec;
  spec.id = std::move(id);
  spec.start = std::move(start);
  spec.restart = options.restart;
  spec.shutdown = options.shutdown;
  spec.significant = options.significant;
  spec.mailbox = options.mailbox;
  spec.backoff = options.backoff;
  spec.drop_expired = options.drop_expired;
  return spec;
}

std::unique_ptr<Process> ProcessStart::make_process(std::string name, StartAck ack, void* self) {
  return static_cast<const ProcessStart*>(self)->make(std::move(name), ack);
}

Async<Result<Started>> ProcessStart::start(StartSettings settings) const {
  StartOptions options = options_;
  options.mailbox = settings.mailbox;
  options.drop_expired = settings.drop_expired;
  return start_server(&make_process, const_cast<ProcessStart*>(this), std::move(options),
                      {.link = true});
}

}  // namespace internal

std::optional<ExitReason> check_child_specs(const std::vector<ChildSpec>& specs,
                                            AutoShutdown auto_shutdown) {
  std::unordered_set<std::string_view> ids;
  for (const ChildSpec& spec : specs) {
    if (auto why = internal::check_child_spec(spec, auto_shutdown)) {
      if (spec.id.empty()) return ExitReason(*why);
      return ExitReason(Term::tuple({*why, Term::atom(spec.id)}));
    }
    if (!ids.insert(spec.id).second) {
      return ExitReason::tagged("duplicate_child_name", Term::atom(spec.id));
    }
  }
  return std::nullopt;
}

std::optional<ExitReason> check_supervisor_flags(const SupervisorSpec& spec) {
  if (!internal::is_word(spec.strategy)) {
    return ExitReason(internal::invalid("invalid_strategy", spec.strategy));
  }
  if (spec.period <= Duration(0)) {
    return ExitReason(internal::invalid_time("invalid_period", spec.period));
  }
  if (!internal::is_word(spec.auto_shutdown)) {
    return ExitReason(internal::invalid("invalid_auto_shutdown", spec.auto_shutdown));
  }
  return std::nullopt;
}

}  // namespace otp
