#include "otp/runtime/cpu_count.h"

#include <sched.h>

#include <fstream>
#include <string>

namespace otp::internal {

namespace {

// The quota of cgroup v2's cpu.max ("max 100000" or "150000 100000") in whole processors, 0 = none.
uint32_t quota_of(const std::string& file) {
  std::ifstream in(file);
  std::string quota;
  long long period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return 0;
  long long microseconds = 0;
  for (char c : quota) {
    if (c < '0' || c > '9' || microseconds > 1'000'000'000'000) return 0;
    microseconds = microseconds * 10 + (c - '0');
  }
  return static_cast<uint32_t>((microseconds + period - 1) / period);
}

uint32_t cgroup_quota() {
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  uint32_t least = 0;
  while (std::getline(in, line)) {
    if (line.rfind("0::", 0) != 0) continue;
    // Each group above may have a quota of its own.
    for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
      uint32_t quota = quota_of("/sys/fs/cgroup" + path + "/cpu.max");
      if (quota != 0 && (least == 0 || quota < least)) least = quota;
      if (path.empty() || path.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace

uint32_t usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  uint32_t count = 1;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    int allowed = CPU_COUNT(&set);
    if (allowed > 0) count = static_cast<uint32_t>(allowed);
  }
  uint32_t quota = cgroup_quota();
  if (quota != 0 && quota < count) count = quota;
  return count == 0 ? 1 : count;
}

}  // namespace otp::internal
