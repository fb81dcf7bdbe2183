#pragma once

#include <string>
#include <utility>

#include "apps/jobs/service.h"
#include "otp/config/check.h"

namespace jobs::testing {

/// What `bin/jobs check` does: reads a file against the service, nothing else of the program.
inline otp::config::CheckResult check(const std::string& yaml,
                                      const otp::config::Environment& environment = {}) {
  const otp::Application jobs = application();
  otp::config::ApplicationDecl declared{.name = jobs.name};
  declared.settings = jobs.settings->record;
  for (const otp::ServerEntry& entry : jobs.servers) declared.servers.push_back(entry.decl);
  return otp::config::check(yaml, "jobs.yaml", {std::move(declared)}, environment);
}

}  // namespace jobs::testing
