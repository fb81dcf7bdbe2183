// Process: links, monitors and aliases as this process makes and removes them. What the signals of
// others do to them is in process.cc.

#include <utility>

#include "otp/runtime/process.h"
#include "otp/runtime/system_impl.h"

namespace otp::internal {

void Process::link(Pid other) {
  if (other.id == id_ || (other.id == parent_ && parent_linked_)) return;
  auto [entry, fresh] = relations().links.insert(other.id);
  if (!fresh && entry->active()) return;  // at most one link a pair
  entry->unlinking = 0;
  Letter* letter = make_signal(LetterKind::link);
  letter->sender = id_;
  system_->deliver(other.id, letter);
}

void Process::unlink(Pid other) {
  if (other.id == parent_ && std::exchange(parent_linked_, false)) {
    relations().links.insert(other.id).first->unlinking = 0;
  }
  auto* entry = relations_ == nullptr ? nullptr : relations_->links.find(other.id);
  if (entry == nullptr || !entry->active()) return;
  entry->unlinking = new_reference();
  Letter* letter = make_signal(LetterKind::unlink);
  letter->sender = id_;
  letter->reference = entry->unlinking;
  system_->deliver(other.id, letter);
}

uint64_t Process::monitor(Pid target, uint8_t flags) {
  uint64_t reference = new_reference();
  if (target.id == id_) return reference;  // no DOWN ever
  *relations().monitors.insert(reference).first = {target.id, nullptr};
  Letter* letter = make_signal(LetterKind::monitor);
  letter->sender = id_;
  letter->reference = reference;
  letter->flags |= flags;
  system_->deliver(target.id, letter);
  return reference;
}

uint64_t Process::monitor_name(std::string_view name) {
  uint64_t reference = monitor(Pid{0, system_->names().whereis(name)}, kByName);
  relations().names.emplace_back(reference, std::string(name));
  return reference;
}

std::string_view Process::monitored_name(uint64_t reference) const {
  if (relations_ == nullptr) return {};
  for (const auto& [of, name] : relations_->names) {
    if (of == reference) return name;
  }
  return {};
}

std::string Process::take_monitored_name(uint64_t reference) {
  std::string name(monitored_name(reference));
  if (relations_ != nullptr) {
    std::erase_if(relations_->names, [&](auto& each) { return each.first == reference; });
  }
  return name;
}

bool Process::demonitor(uint64_t reference) {
  auto* entry = relations_ == nullptr ? nullptr : relations_->monitors.find(reference);
  if (relations_ != nullptr) end_monitor_alias(reference);
  if (entry == nullptr) return false;
  send_demonitor(entry->target, reference);
  relations_->monitors.erase(reference);
  if (relations_->tags != nullptr) relations_->tags->erase(reference);
  (void)take_monitored_name(reference);
  return true;
}

void Process::send_demonitor(uint64_t target, uint64_t reference) {
  Letter* letter = make_signal(LetterKind::demonitor);
  letter->sender = id_;
  letter->reference = reference;
  system_->deliver(target, letter);
}

void Process::flush_down(uint64_t reference) {
  Letter* letter = take_matching([reference](const Letter& each) {
    return each.kind == LetterKind::down && each.reference == reference;
  });
  if (letter != nullptr) {
    if (letter->flags & kByName) (void)take_monitored_name(reference);
    consume(letter);
  }
}

void Process::flush_exit(uint64_t from) {
  Letter* letter = take_matching([from](const Letter& each) {
    return (each.kind == LetterKind::link_exit || each.kind == LetterKind::exit) &&
           each.sender == from;
  });
  if (letter != nullptr) consume(letter);
}

void Process::adopt(uint64_t child, const ChildTies& ties) {
  if (ties.linked) {
    relations().links.insert(child).first->unlinking = ties.quiet ? Relations::Link::kQuiet : 0;
  }
  if (ties.monitor != 0) *relations().monitors.insert(ties.monitor).first = {child, ties.sink};
}

void Process::watch(uint64_t reference, uint64_t watcher, uint8_t flags) {
  auto* entry = relations().watchers.insert(reference).first;
  entry->watcher = watcher;
  entry->flags = flags & (kByName | kFailed);
}

bool Process::unwatch(uint64_t reference) {
  return relations_ != nullptr && relations_->watchers.erase(reference);
}

}  // namespace otp::internal
