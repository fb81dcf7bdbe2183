#include "otp/application/application.h"

#include <algorithm>

#include "otp/base/check.h"
#include "otp/base/enum_names.h"
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

ChildOptions options_of(const config::ChildDecl& decl) {
  ChildOptions options;
  options.name = decl.name.value_or("");
  options.restart = decl.restart;
  options.shutdown = decl.shutdown;
  options.significant = decl.significant;
  if (decl.mailbox) options.mailbox = *decl.mailbox;
  if (decl.backoff) options.backoff = *decl.backoff;
  options.drop_expired = decl.drop_expired;
  return options;
}

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
    spec.children.push_back(
        supervisor(child.id, supervisor_spec(*child.supervisor, servers), options_of(child)));
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

namespace {

// Started, loaded, or neither: what an application may need of another.
int rank(ApplicationType type) {
  if (type == ApplicationType::none) return 0;
  return type == ApplicationType::load ? 1 : 2;
}

Term mode_term(ApplicationType type) { return Term::atom(std::string(enum_name(type))); }

std::optional<ExitReason> bad_mode(const std::vector<Application>& all) {
  for (const Application& application : all) {
    for (const Application& needed : all) {
      const auto& names = application.applications;
      if (std::find(names.begin(), names.end(), needed.name) == names.end()) continue;
      if (rank(*needed.type) >= rank(*application.type)) continue;
      return ExitReason::tagged(
          "bad_mode", Term::tuple({Term::atom(application.name), mode_term(*application.type),
                                   Term::atom(needed.name), mode_term(*needed.type)}));
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<Application>> with_modes(
    std::vector<Application> applications,
    const std::vector<std::pair<std::string, ApplicationType>>& modes) {
  for (const auto& [name, mode] : modes) {
    auto found = std::find_if(applications.begin(), applications.end(),
                              [&name = name](auto& a) { return a.name == name; });
    if (found == applications.end()) {
      return ExitReason::tagged("unknown_application", Term::atom(name));
    }
    found->type = mode;
  }
  // From the last to the first: each comes after those that it needs.
  for (size_t i = applications.size(); i-- > 0;) {
    std::optional<ApplicationType>& type = applications[i].type;
    if (type) continue;
    for (size_t k = i + 1; k < applications.size(); ++k) {
      const auto& names = applications[k].applications;
      if (std::find(names.begin(), names.end(), applications[i].name) == names.end()) continue;
      if (!type || *applications[k].type < *type) type = applications[k].type;
    }
    if (!type) type = ApplicationType::permanent;
  }
  if (auto wrong = bad_mode(applications)) return *wrong;
  return applications;
}

}  // namespace otp
