#pragma once

#include <map>
#include <optional>
#include <string>

#include "otp/config/imports.h"
#include "otp/config/testing/bank.h"

// The bank's configuration in several files, which the test has in memory.

namespace bank {

using Files = std::map<std::string, std::string>;

/// Checks etc/bank.yaml, with the files that it imports.
inline otp::config::CheckResult check_files(const Files& files,
                                            const otp::config::Environment& environment = {}) {
  otp::config::CheckOptions options;
  options.read = [&](const std::string& path, std::string& error) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found != files.end()) return found->second;
    error = "no such file";
    return std::nullopt;
  };
  return otp::config::check(files.at("etc/bank.yaml"), "etc/bank.yaml", {application()},
                            environment, options);
}

/// An etc/bank.yaml that imports etc/dev.yaml, or what BANK_ENV says, and /run/bank.yaml.
inline const std::string kImportingFile =
    "application: bank\n"
    "imports: [\"${BANK_ENV:dev}.yaml\", /run/bank.yaml]\n"
    "settings: {listen: base, limits: {daily: 1, factor: 1}, hosts: [a, b]}\n"
    "supervisor:\n  intensity: 3\n  children:\n"
    "    - {id: ledger, start: Ledger, args: {currency: EUR, tellers: 1}}\n"
    "    - {id: clock, start: Clock}\n";

}  // namespace bank
