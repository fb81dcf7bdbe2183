#include "otp/config/imports.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/config/parser.h"

namespace otp::config {
namespace {

std::string_view id_of(const Node& child) {
  const Node::Entry* id = child.is_map() ? child.find("id") : nullptr;
  return id != nullptr && id->value->is_scalar() ? std::string_view(id->value->text)
                                                 : std::string_view();
}

/// Children of one id are merged; the others are added behind those that are there.
NodePtr merged_children(const Node& base, const Node& over) {
  auto result = std::make_shared<Node>(base);
  for (const NodePtr& child : over.items) {
    const std::string_view id = id_of(*child);
    const auto same =
        std::find_if(result->items.begin(), result->items.end(),
                     [&](const NodePtr& n) { return !id.empty() && id_of(*n) == id; });
    if (same == result->items.end()) {
      result->items.push_back(child);
    } else {
      *same = merged(*same, child);
    }
  }
  return result;
}

class Importer {
 public:
  Importer(const Environment* environment, const ReadFile& read, Diagnostics& diagnostics)
      : environment_(environment), read_(read), diagnostics_(diagnostics) {}

  bool failed() const { return failed_; }

  NodePtr run(const NodePtr& root, const std::string& path) {
    if (!root->is_map()) return root;
    const Node::Entry* imports = root->find("imports");
    if (imports == nullptr) return root;
    auto result = std::make_shared<Node>(*root);
    std::erase_if(result->entries, [](const Node::Entry& entry) { return entry.key == "imports"; });
    if (!imports->value->is_list()) {
      fail(imports->value->at, "a list of files", imports->value->got());
      return result;
    }
    open_.push_back(path);
    NodePtr sum = std::move(result);
    for (const NodePtr& item : imports->value->items) {
      if (const NodePtr imported = import(*item, path)) sum = merged(sum, imported);
    }
    open_.pop_back();
    return sum;
  }

 private:
  NodePtr import(const Node& item, const std::string& path) {
    if (item.unknown) return nullptr;
    if (!item.is_scalar() || item.text.empty()) {
      fail(item.at, "the name of a file", item.got());
      return nullptr;
    }
    std::string name = item.text;
    const std::size_t slash = path.rfind('/');
    if (name.front() != '/' && slash != std::string::npos) name = path.substr(0, slash + 1) + name;
    if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
      fail(item.at, "a file that does not import itself", item.got());
      return nullptr;
    }
    if (open_.size() == kImportsMax) {
      fail(item.at, "at most " + std::to_string(kImportsMax) + " files in each other", "another");
      return nullptr;
    }
    std::string error = "no way to read files";
    const std::optional<std::string> bytes = read_ ? read_(name, error) : std::nullopt;
    if (!bytes) {
      fail(item.at, "a file that can be read", item.got() + " (" + error + ")");
      return nullptr;
    }
    return parse_import(item, name, *bytes);
  }

  NodePtr parse_import(const Node& item, const std::string& name, const std::string& bytes) {
    const Parsed parsed = parse(bytes, environment_, Placeholders::replace,
                                std::make_shared<const std::string>(name));
    for (const Diagnostic& diagnostic : parsed.diagnostics.sorted()) diagnostics_.add(diagnostic);
    if (parsed.root == nullptr) {
      failed_ = true;
      return nullptr;
    }
    if (!parsed.root->is_map()) {
      fail(item.at, "a file that is a mapping", item.got() + ", which is not");
      return nullptr;
    }
    return run(parsed.root, name);
  }

  void fail(const Position& at, std::string_view expected, std::string_view got) {
    failed_ = true;
    diagnostics_.expected(at, expected, got);
  }

  const Environment* environment_;
  const ReadFile& read_;
  Diagnostics& diagnostics_;
  bool failed_ = false;
  std::vector<std::string> open_;  // the files whose imports are being read, outermost first
};

}  // namespace

NodePtr merged(const NodePtr& base, const NodePtr& over) {
  if (!base->is_map() || !over->is_map()) return over;
  auto result = std::make_shared<Node>(*base);
  for (const Node::Entry& entry : over->entries) {
    const auto same = std::find_if(result->entries.begin(), result->entries.end(),
                                   [&](const Node::Entry& mine) { return mine.key == entry.key; });
    if (same == result->entries.end()) {
      result->entries.push_back(entry);
      continue;
    }
    const bool children =
        entry.key == "children" && same->value->is_list() && entry.value->is_list();
    same->value =
        children ? merged_children(*same->value, *entry.value) : merged(same->value, entry.value);
    same->key_at = entry.key_at;
  }
  return result;
}

NodePtr with_imports(const NodePtr& root, const std::string& path, const Environment* environment,
                     const ReadFile& read, Diagnostics& diagnostics) {
  Importer importer(environment, read, diagnostics);
  NodePtr sum = importer.run(root, path);
  return importer.failed() ? nullptr : sum;
}

}  // namespace otp::config
