#include "otp/runtime/process.h"
#include "otp/runtime/system_impl.h"

// Process: what comes through aliases, and what ends with a monitor.

namespace otp::internal {

void Process::tag_monitor(uint64_t reference, Term tag) {
  auto& tags = relations().tags;
  if (tags == nullptr) tags = std::make_unique<std::map<uint64_t, Term>>();
  tags->insert_or_assign(reference, std::move(tag));
}

// The same DOWN with the tag that its monitor was given, if it was given one.
Letter* Process::with_tag(Letter* down) {
  auto found = relations_->tags->find(down->reference);
  if (found == relations_->tags->end()) return down;
  Letter* tagged = allocate_letter(sizeof(ExitReason) + sizeof(Term));
  tagged->kind = LetterKind::down;
  tagged->sender = down->sender;
  tagged->reference = down->reference;
  tagged->flags = static_cast<uint8_t>((down->flags & kByName) | kPayload | kTagged);
  new (tagged->payload()) ExitReason(std::move(down->as<ExitReason>()));
  new (&tagged->tag()) Term(std::move(found->second));
  relations_->tags->erase(found);
  consume(down);
  return tagged;
}

// An alias that lives as long as the monitor of the same reference goes with it.
void Process::end_monitor_alias(uint64_t reference) {
  auto* entry = relations_->aliases.find(reference);
  if (entry != nullptr && (entry->flags & kWithMonitor)) relations_->aliases.erase(reference);
}

void Process::take_aliased(Letter* letter) {
  auto* entry = relations_ == nullptr ? nullptr : relations_->aliases.find(letter->reference);
  if (entry == nullptr || exiting_ || (entry->flags & kForResponse)) return consume(letter);
  const uint8_t flags = entry->flags;
  if (flags & kOneMessage) {
    relations_->aliases.erase(letter->reference);
    if (flags & kWithMonitor) demonitor(letter->reference);
  }
  letter->kind = LetterKind::message;
  if (limits_ != nullptr && queue_length_ >= limits_->limit.letters_max) return refuse(letter);
  append(letter);
}

}  // namespace otp::internal
