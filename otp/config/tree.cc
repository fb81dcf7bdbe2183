#include "otp/config/tree.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/config/child_keys.h"
#include "otp/config/decode.h"

namespace otp::config {
namespace {

/// A child as others may refer to it.
struct Named {
  std::string id;
  std::string name;  // empty: none
  std::string server;
  bool unknown = false;  // its name or id comes from a variable that is not looked up
};

const Node* scalar_at(const Node& map, std::string_view key) {
  const Node::Entry* entry = map.find(key);
  return entry != nullptr && entry->value->is_scalar() ? entry->value.get() : nullptr;
}

class TreeReader {
 public:
  TreeReader(const ApplicationDecl& application, Diagnostics& diagnostics)
      : application_(application), diagnostics_(diagnostics) {}

  SupervisorDecl read(const Node& node) {
    collect(node);
    return read_supervisor(node);
  }

 private:
  // ---- First walk: who is there. References may point forwards.

  void collect(const Node& supervisor) {
    const Node::Entry* children = supervisor.find("children");
    if (children == nullptr) return;
    for (const NodePtr& child : children->value->items) {
      if (const Node::Entry* nested = child->find("supervisor")) collect(*nested->value);
      const Node* id = scalar_at(*child, "id");
      const Node* name = scalar_at(*child, "name");
      const Node* start = scalar_at(*child, "start");
      if (id == nullptr && name == nullptr) continue;
      named_.push_back({id == nullptr ? "" : id->text, name == nullptr ? "" : name->text,
                        start == nullptr ? "" : start->text,
                        (id != nullptr && id->unknown) || (name != nullptr && name->unknown)});
      if (name != nullptr) unique(names_, *name, "a name that no other child has");
    }
  }

  void unique(std::map<std::string, Position>& seen, const Node& text, std::string_view expected) {
    const auto [first, is_new] = seen.emplace(text.text, text.at);
    if (is_new || text.unknown) return;
    diagnostics_.expected(text.at, expected,
                          text.got() + " again (first at " + first->second.short_text() + ")");
  }

  /// How configurations call the server type with this qualified name.
  std::string server_name(std::string_view type) const {
    for (const ServerDecl& server : application_.servers) {
      if (server.type == type) return server.name;
    }
    return std::string(otp::internal::without_qualifiers(type));
  }

  std::optional<std::string> resolve(const Node& node, std::string_view type) {
    const std::string server = server_name(type);
    const Named* found = nullptr;
    std::size_t by_id = 0;
    for (const Named& child : named_) {
      if (!child.name.empty() && child.name == node.text) found = &child;
    }
    if (found == nullptr) {
      for (const Named& child : named_) {
        if (child.id != node.text) continue;
        found = &child;
        ++by_id;
      }
    }
    const std::string expected = "the name of a child that runs " + server;
    if (found == nullptr) {
      refuse_unknown(node, server, expected);
    } else if (by_id > 1) {
      diagnostics_.expected(node.at, expected, node.got() + ", the id of several: give one a name");
    } else if (found->server != server) {
      diagnostics_.expected(
          node.at, expected,
          node.got() + ", which " +
              (found->server.empty() ? "is a supervisor" : "runs " + shown(found->server)));
    } else if (found->name.empty()) {
      diagnostics_.expected(node.at, expected,
                            node.got() + ", the id of a child without a name: give it a `name`");
    } else {
      return found->name;
    }
    return std::nullopt;
  }

  void refuse_unknown(const Node& node, std::string_view server, const std::string& expected) {
    std::vector<std::string_view> fitting;
    for (const Named& child : named_) {
      if (child.unknown && child.server == server) return;  // it may be this one
      if (child.server == server && !child.name.empty()) fitting.push_back(child.name);
    }
    const std::string which = fitting.empty() ? "" : " (" + listed(fitting) + ")";
    diagnostics_.expected(node.at, expected + which, node.got(),
                          node.hidden ? "" : did_you_mean(node.text, fitting));
  }

  // ---- Second walk: what they say.

  Decoder decoder() {
    return Decoder(diagnostics_,
                   [this](const Node& node, std::string_view type) { return resolve(node, type); });
  }

  SupervisorDecl read_supervisor(const Node& node) {
    SupervisorDecl supervisor;
    supervisor.position = node.at;
    SupervisorKeys keys;
    decoder().decode_record(node, describe<SupervisorKeys>(), &keys, {"a", "key", "a supervisor"},
                            {"children"});
    supervisor.strategy = keys.strategy;
    supervisor.intensity = keys.intensity;
    supervisor.period = keys.period;
    supervisor.auto_shutdown = keys.auto_shutdown;
    if (!node.is_map() || node.unknown) return supervisor;
    const Node::Entry* children = node.find("children");
    if (children == nullptr) {
      diagnostics_.expected(node.at, "the key children of a supervisor (a list)", "none");
    } else if (!children->value->is_list()) {
      diagnostics_.expected(children->value->at, "a list of children", children->value->got(),
                            children->value->is_nothing() ? "; no children is written []" : "");
    } else {
      read_children(*children->value, supervisor);
    }
    return supervisor;
  }

  void read_children(const Node& list, SupervisorDecl& supervisor) {
    std::map<std::string, Position> ids;
    for (const NodePtr& node : list.items) {
      if (!node->is_map()) {
        diagnostics_.expected(node->at, "a child (a mapping)", node->got());
        continue;
      }
      if (const Node* id = scalar_at(*node, "id")) {
        unique(ids, *id, "an id that no other child of this supervisor has");
        if (id->text.empty() && !id->unknown) {
          diagnostics_.expected(id->at, "an id that is not empty", id->got());
        }
      }
      ChildDecl child = read_child(*node);
      check_significant(*node, child, supervisor);
      supervisor.children.push_back(std::move(child));
    }
  }

  ChildDecl read_child(const Node& node) {
    const Node::Entry* start = node.find("start");
    const Node::Entry* nested = node.find("supervisor");
    if (start != nullptr && nested != nullptr) {
      diagnostics_.expected(nested->key_at, "either start or supervisor", "both");
      return {};
    }
    if (start == nullptr && nested == nullptr) {
      const std::size_t mistakes = diagnostics_.size();
      WorkerKeys keys;  // to find a misspelt key
      decoder().decode_record(node, describe<WorkerKeys>(), &keys, {"a", "key", "a child"},
                              {"start", "args", "supervisor"});
      if (diagnostics_.size() > mistakes) return {};
      diagnostics_.expected(node.at, "the key start (a server) or supervisor of a child",
                            "neither");
      return {};
    }
    return start != nullptr ? read_worker(node, *start->value) : read_subtree(node, *nested->value);
  }

  ChildDecl read_worker(const Node& node, const Node& start) {
    WorkerKeys keys;
    decoder().decode_record(node, describe<WorkerKeys>(), &keys, {"a", "key", "a child"},
                            {"start", "args"});
    ChildDecl child = common(node, keys);
    child.start = start.text;
    child.drop_expired = keys.drop_expired;
    if (keys.mailbox && keys.mailbox->max.given()) {
      child.mailbox = MailboxLimit{keys.mailbox->max.get(), keys.mailbox->on_full};
    }
    if (const ServerDecl* server = find_server(start)) child.args = read_args(node, *server);
    return child;
  }

  ChildDecl read_subtree(const Node& node, const Node& nested) {
    SubtreeKeys keys;
    decoder().decode_record(node, describe<SubtreeKeys>(), &keys,
                            {"a", "key", "a supervisor child"}, {"supervisor"});
    ChildDecl child = common(node, keys);
    child.supervisor = std::make_shared<const SupervisorDecl>(read_supervisor(nested));
    return child;
  }

  template <class Keys>
  static ChildDecl common(const Node& node, const Keys& keys) {
    ChildDecl child;
    child.position = node.at;
    if (keys.id.given()) child.id = keys.id.get();
    child.name = keys.name;
    child.restart = keys.restart;
    child.shutdown = keys.shutdown;
    child.significant = keys.significant;
    if (keys.backoff && keys.backoff->min.given() && keys.backoff->max.given()) {
      child.backoff = Backoff{keys.backoff->min, keys.backoff->max, keys.backoff->factor};
    }
    return child;
  }

  const ServerDecl* find_server(const Node& start) {
    if (start.unknown) return nullptr;
    std::vector<std::string_view> names;
    for (const ServerDecl& server : application_.servers) {
      if (start.is_scalar() && server.name == start.text) return &server;
      names.push_back(server.name);
    }
    const std::string which = names.empty() ? "" : " (" + listed(names) + ")";
    diagnostics_.expected(
        start.at, "a server of " + application_.name + which, start.got(),
        start.is_scalar() && !start.hidden ? did_you_mean(start.text, names) : "");
    return nullptr;
  }

  std::shared_ptr<const void> read_args(const Node& node, const ServerDecl& server) {
    const Node::Entry* given = node.find("args");
    if (!server.args) {
      if (given != nullptr && !(given->value->is_map() && given->value->entries.empty())) {
        diagnostics_.expected(given->key_at, "no args, as " + server.name + " takes none",
                              given->value->got());
      }
      return nullptr;
    }
    Node none;
    none.kind = Node::Kind::map;
    none.at = node.at;
    std::shared_ptr<void> args = server.args->make();
    decoder().decode_record(given == nullptr ? none : *given->value, server.args->describe(),
                            args.get(), {"an", "argument", server.name});
    return args;
  }

  /// OTP refuses both combinations: such a child could never end the supervisor.
  void check_significant(const Node& node, const ChildDecl& child,
                         const SupervisorDecl& supervisor) {
    if (!child.significant) return;
    const Node::Entry* entry = node.find("significant");
    const Position& at = entry == nullptr ? node.at : entry->value->at;
    if (child.restart == Restart::permanent) {
      diagnostics_.expected(at, "false, as the child is permanent", "true");
    } else if (supervisor.auto_shutdown == AutoShutdown::never) {
      diagnostics_.expected(at, "false, as the supervisor's auto_shutdown is never", "true");
    }
  }

  const ApplicationDecl& application_;
  Diagnostics& diagnostics_;
  std::vector<Named> named_;
  std::map<std::string, Position> names_;
};

}  // namespace

SupervisorDecl read_tree(const Node& supervisor, const ApplicationDecl& application,
                         Diagnostics& diagnostics) {
  return TreeReader(application, diagnostics).read(supervisor);
}

}  // namespace otp::config
