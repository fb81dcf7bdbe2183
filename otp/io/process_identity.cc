#include "otp/io/process_identity.h"

#include <dirent.h>
#include <signal.h>

#include <charconv>
#include <memory>

#include "otp/io/descriptor.h"

namespace otp::io {
namespace {

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Cuts the next word off `text`, up to `separator`.
std::string_view next_word(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return word;
}

}  // namespace

std::string ProcessIdentity::to_text() const {
  return std::to_string(pid) + ":" + std::to_string(start_ticks) + ":" + std::to_string(session) +
         ":" + boot;
}

std::optional<ProcessIdentity> ProcessIdentity::from_text(std::string_view text) {
  ProcessIdentity identity;
  if (!parse_number(next_word(text, ':'), identity.pid) || identity.pid <= 1) return std::nullopt;
  if (!parse_number(next_word(text, ':'), identity.start_ticks)) return std::nullopt;
  if (!parse_number(next_word(text, ':'), identity.session)) return std::nullopt;
  identity.boot = std::string(text);
  return identity;
}

std::optional<ProcessStat> process_stat(pid_t pid) {
  std::string text;
  if (!read_small_file("/proc/" + std::to_string(pid) + "/stat", text)) return std::nullopt;
  // The second field is the program's name in brackets and may hold anything, also brackets.
  const size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(name_end + 2);
  ProcessStat stat{.pid = pid};
  const std::string_view state = next_word(rest, ' ');
  if (state.empty()) return std::nullopt;
  stat.state = state[0];
  if (!parse_number(next_word(rest, ' '), stat.parent)) return std::nullopt;
  if (!parse_number(next_word(rest, ' '), stat.group)) return std::nullopt;
  if (!parse_number(next_word(rest, ' '), stat.session)) return std::nullopt;
  constexpr int kFieldsBetween = 15;  // tty (7) to itrealvalue (21)
  for (int i = 0; i < kFieldsBetween; ++i) next_word(rest, ' ');
  if (!parse_number(next_word(rest, ' '), stat.start_ticks)) return std::nullopt;
  return stat;
}

std::vector<ProcessStat> all_processes() {
  std::vector<ProcessStat> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return found;
  while (const dirent* entry = ::readdir(proc.get())) {
    pid_t pid = 0;
    if (!parse_number(std::string_view(entry->d_name), pid)) continue;
    if (auto stat = process_stat(pid)) found.push_back(*stat);
  }
  return found;
}

std::string boot_id() {
  std::string text;
  if (!read_small_file("/proc/sys/kernel/random/boot_id", text)) return {};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int kill_leftovers(const ProcessIdentity& leader) {
  if (leader.pid <= 1 || leader.start_ticks == 0 || leader.boot != boot_id()) return 0;
  // While a group exists the kernel gives its number to no new process. So a process of that number
  // with another start time means that our group is gone, whoever now leads one of the same number.
  const auto holder = process_stat(leader.pid);
  if (holder && holder->start_ticks != leader.start_ticks) return 0;
  int killed = 0;
  for (const ProcessStat& process : all_processes()) {
    if (process.group != leader.pid || process.session != leader.session) continue;
    if (process.start_ticks < leader.start_ticks || process.state == 'Z') continue;
    if (::kill(process.pid, SIGKILL) == 0) ++killed;
  }
  return killed;
}

}  // namespace otp::io
