#include "otp/application/application.h"

#include <algorithm>

#include "otp/base/check.h"
#include "otp/supervision/supervisor.h"

namespace otp {

namespace {

const ServerEntry& entry_of(const std::vector<ServerEntry>& servers, const std::string& name) {
  auto found = std::find_if(servers.begin(), servers.end(),
                            [&](const ServerEntry& entry) { return entry.decl.name == name; });
  OTP_CHECK(found != servers.end(), "no server type %s: check() should have said so", name.c_str());
  return *found;
}

}  // namespace

SupervisorSpec supervisor_spec(const config::SupervisorDecl& decl,
                               const std::vector<ServerEntry>& servers) {
  SupervisorSpec spec;
  spec.strategy = decl.strategy;
  spec.intensity = decl.intensity;
  spec.period = decl.period;
  spec.auto_shutdown = decl.auto_shutdown;
  for (const config::ChildDecl& child : decl.children) {
    if (child.supervisor == nullptr) {
      spec.children.push_back(entry_of(servers, child.start).child(child));
      continue;
    }
    ChildOptions options;
    options.name = child.name.value_or("");
    options.restart = child.restart;
    options.shutdown = child.shutdown;
    options.significant = child.significant;
    if (child.backoff) options.backoff = *child.backoff;
    spec.children.push_back(
        supervisor(child.id, supervisor_spec(*child.supervisor, servers), std::move(options)));
  }
  return spec;
}

namespace {

enum class Visit { no, under_way, done };

struct Sorter {
  std::vector<Application>& all;
  std::vector<Visit> visits;
  std::vector<Application> sorted{};

  // Depth first: what an application needs comes before it. Nullopt: sorted.
  std::optional<ExitReason> visit(size_t index) {
    if (visits[index] == Visit::done) return std::nullopt;
    if (visits[index] == Visit::under_way) {
      return ExitReason::tagged("dependency_cycle", Term::atom(all[index].name));
    }
    visits[index] = Visit::under_way;
    for (const std::string& needed : all[index].applications) {
      auto found = std::find_if(all.begin(), all.end(), [&](auto& a) { return a.name == needed; });
      if (found == all.end()) {
        return ExitReason::tagged("unknown_application", Term::atom(needed));
      }
      if (auto wrong = visit(static_cast<size_t>(found - all.begin()))) return wrong;
    }
    visits[index] = Visit::done;
    sorted.push_back(all[index]);
    return std::nullopt;
  }
};

}  // namespace

Result<std::vector<Application>> start_order(std::vector<Application> applications) {
  for (size_t i = 0; i < applications.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (applications[i].name == applications[k].name) {
        return ExitReason::tagged("duplicate_application", Term::atom(applications[i].name));
      }
    }
  }
  Sorter sorter{applications, std::vector<Visit>(applications.size(), Visit::no)};
  for (size_t i = 0; i < applications.size(); ++i) {
    if (auto wrong = sorter.visit(i)) return *wrong;
  }
  return std::move(sorter.sorted);
}

}  // namespace otp
