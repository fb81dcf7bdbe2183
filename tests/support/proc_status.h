#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace otp::testing {

/// The number in a line of /proc/self/status: KiB of VmRSS or VmHWM, the count of Threads.
/// -1: there is no such line.
inline long proc_status(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) throw std::runtime_error("no /proc/self/status");
  char line[256];
  long number = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) {
      number = std::strtol(line + std::strlen(key) + 1, nullptr, 10);
    }
  }
  std::fclose(file);
  return number;
}

}  // namespace otp::testing
