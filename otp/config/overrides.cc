#include "otp/config/overrides.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "otp/config/parser.h"
#include "otp/config/source.h"

namespace otp::config {
namespace {

/// A step into a node: a key of a mapping or an index of a list.
using Step = std::variant<std::string, std::size_t>;
using Path = std::vector<Step>;

/// A value that may be overridden.
struct Target {
  Path path;
  const TypeDescription* type;
};

using Targets = std::multimap<std::string, Target>;

/// Deeper structs cannot be overridden singly; a struct that contains itself would never end.
constexpr std::size_t kLevelsMax = 8;

std::string capitals(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') {
      out += static_cast<char>(c - 'a' + 'A');
    } else {
      const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      out += kept ? c : '_';
    }
  }
  return out;
}

Path operator/(Path path, Step step) {
  path.push_back(std::move(step));
  return path;
}

const Node* value_of(const Node* node, std::string_view key) {
  if (node == nullptr || !node->is_map()) return nullptr;
  const Node::Entry* entry = node->find(key);
  return entry == nullptr ? nullptr : entry->value.get();
}

/// Adds the value itself and whatever is inside it.
void add_value(Targets& targets, const std::string& name, const Path& path, const Node* node,
               const TypeDescription& declared, std::size_t level) {
  const TypeDescription& type = declared.kind == TypeKind::optional ? declared.element() : declared;
  targets.emplace(name, Target{path, &type});
  if (level == kLevelsMax) return;
  if (type.kind == TypeKind::record) {
    for (const FieldDescription& field : type.fields) {
      const std::string key(field.name);
      add_value(targets, name + "__" + capitals(key), path / key, value_of(node, key), field.type(),
                level + 1);
    }
  } else if (type.kind == TypeKind::map && node != nullptr && node->is_map()) {
    for (const Node::Entry& entry : node->entries) {
      add_value(targets, name + "__" + capitals(entry.key), path / entry.key, entry.value.get(),
                type.element(), level + 1);
    }
  }
}

/// Adds the fields of a struct, not the struct: it has no name of its own.
void add_fields(Targets& targets, const std::string& prefix, const Path& path, const Node* node,
                const RecordType& record) {
  for (const FieldDescription& field : record.describe().fields) {
    const std::string key(field.name);
    add_value(targets, prefix + capitals(key), path / key, value_of(node, key), field.type(), 1);
  }
}

const ServerDecl* find_server(const ApplicationDecl& application, const Node* start) {
  if (start == nullptr || !start->is_scalar()) return nullptr;
  for (const ServerDecl& server : application.servers) {
    if (server.name == start->text) return &server;
  }
  return nullptr;
}

void add_children(Targets& targets, const std::string& prefix, const Path& path,
                  const Node* supervisor, const ApplicationDecl& application) {
  const Node* children = value_of(supervisor, "children");
  if (children == nullptr || !children->is_list()) return;
  for (std::size_t i = 0; i < children->items.size(); ++i) {
    const Node* child = children->items[i].get();
    const Node* id = value_of(child, "id");
    if (id == nullptr || !id->is_scalar()) continue;
    const std::string name = prefix + capitals(id->text) + "__";
    const Path at = path / "children" / i;
    const ServerDecl* server = find_server(application, value_of(child, "start"));
    if (server != nullptr && server->args) {
      add_fields(targets, name, at / "args", value_of(child, "args"), *server->args);
    }
    add_children(targets, name, at / "supervisor", value_of(child, "supervisor"), application);
  }
}

Targets all_targets(const Node& root, const ApplicationDecl& application) {
  Targets targets;
  const std::string prefix = override_prefix(application.name);
  if (application.settings) {
    add_fields(targets, prefix, {"settings"}, value_of(&root, "settings"), *application.settings);
  }
  add_children(targets, prefix, {"supervisor"}, value_of(&root, "supervisor"), application);
  return targets;
}

/// `node` with `value` at the rest of the path, which starts at `step`; what is missing is made.
NodePtr replaced(const NodePtr& node, const Path& path, std::size_t step, const NodePtr& value) {
  if (step == path.size()) return value;
  auto copy = node == nullptr ? std::make_shared<Node>() : std::make_shared<Node>(*node);
  if (const auto* index = std::get_if<std::size_t>(&path[step])) {
    copy->items[*index] = replaced(copy->items[*index], path, step + 1, value);
    return copy;
  }
  const auto& key = std::get<std::string>(path[step]);
  if (!copy->is_map()) {  // absent, or not what it should be
    *copy = Node{};
    copy->kind = Node::Kind::map;
    copy->at = value->at;
  }
  for (Node::Entry& entry : copy->entries) {
    if (entry.key != key) continue;
    entry.value = replaced(entry.value, path, step + 1, value);
    return copy;
  }
  copy->entries.push_back({key, value->at, replaced(nullptr, path, step + 1, value)});
  return copy;
}

/// The nodes as if each stood in the variable, and were not to be shown.
NodePtr in_variable(const Node& node, const Position& at) {
  auto copy = std::make_shared<Node>(node);
  copy->at = at;
  copy->hidden = true;
  for (NodePtr& item : copy->items) item = in_variable(*item, at);
  for (Node::Entry& entry : copy->entries) {
    entry.key_at = at;
    entry.value = in_variable(*entry.value, at);
  }
  return copy;
}

bool is_written_in_yaml(const TypeDescription& type) {
  return type.kind == TypeKind::list || type.kind == TypeKind::map || type.kind == TypeKind::record;
}

/// The variable's value as a node, or nullptr when it is not even YAML.
NodePtr value_node(const std::string& text, const TypeDescription& type, const Position& at,
                   Diagnostics& diagnostics) {
  if (is_written_in_yaml(type)) {
    const Parsed parsed = parse(text, nullptr, Placeholders::keep);
    if (parsed.diagnostics.empty()) return in_variable(*parsed.root, at);
    const bool list = type.kind == TypeKind::list;
    diagnostics.expected(at, list ? "a list in YAML" : "a mapping in YAML", "another value");
    return nullptr;
  }
  Node node;
  node.kind = Node::Kind::scalar;
  node.plain = true;
  node.text = text;
  return in_variable(node, at);
}

}  // namespace

std::string override_prefix(std::string_view application) { return capitals(application) + "__"; }

std::vector<std::string> override_names(const Node& root, const ApplicationDecl& application) {
  std::vector<std::string> names;
  for (const auto& [name, target] : all_targets(root, application)) names.push_back(name);
  return names;
}

NodePtr apply_overrides(const NodePtr& root, const ApplicationDecl& application,
                        const Environment& environment, Diagnostics& diagnostics) {
  const Targets targets = all_targets(*root, application);
  const std::string prefix = override_prefix(application.name);
  NodePtr result = root;
  // By name, so that a struct comes before the fields in it.
  for (auto it = environment.lower_bound(prefix); it != environment.end(); ++it) {
    const auto& [name, text] = *it;
    if (name.compare(0, prefix.size(), prefix) != 0) break;
    Position at;
    at.variable = std::make_shared<const std::string>(name);
    const std::size_t fitting = targets.count(name);
    if (fitting == 0) {
      std::vector<std::string_view> names;
      for (const auto& target : targets) names.push_back(target.first);
      diagnostics.expected(at, "the name of a setting or of a child's argument", "no such name",
                           did_you_mean(name, names));
    } else if (fitting > 1) {
      diagnostics.expected(at, "the name of one value",
                           "a name that fits " + std::to_string(fitting) + " values");
    } else if (!is_utf8(text)) {
      diagnostics.expected(at, "UTF-8", "other bytes");
    } else {
      const Target& target = targets.find(name)->second;
      const NodePtr value = value_node(text, *target.type, at, diagnostics);
      if (value != nullptr) result = replaced(result, target.path, 0, value);
    }
  }
  return result;
}

}  // namespace otp::config
