// The only file that includes yaml-cpp. Of yaml-cpp 0.7 it uses the scanner's events alone: its own
// nodes accept duplicate keys, build cyclic graphs and guess types.

#include "otp/config/parser.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "otp/config/placeholder.h"
#include "otp/config/source.h"

namespace otp::config {
namespace {

/// Ends the parse: a mistake after which the rest of the file means nothing.
struct Fatal {
  std::size_t offset;
  std::string expected;
  std::string got;
};

bool is_delimiter(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == ',' || c == ']' || c == '}';
}

/// A list or mapping that is being read.
struct Frame {
  std::shared_ptr<Node> node;
  YAML::anchor_t anchor = 0;
  std::optional<Node::Entry> pending;  // of a mapping: the key whose value comes next
  std::size_t pending_end = 0;         // the offset behind that key
  bool pending_is_merge = false;
  std::unordered_map<std::string, Position> keys;  // of a mapping: where each key stood first
  std::vector<NodePtr> merged;                     // of a mapping: the values of `<<`
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, const Environment* environment, Placeholders placeholders,
              Diagnostics& diagnostics)
      : source_(source),
        environment_(environment),
        placeholders_(placeholders),
        diagnostics_(diagnostics) {}

  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Fatal{offset(mark), "one YAML document", "a second one"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::size_t at = offset(mark);
    auto node = std::make_shared<Node>();
    node->plain = true;
    node->text = null_spelling(at);
    node->at = source_.position(at);
    if (node->text.empty() && !frames_.empty() && frames_.back().pending) {
      node->at = frames_.back().pending->key_at;
      require_colon(frames_.back());
    }
    add(std::move(node), at, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const std::size_t at = offset(mark);
    refuse_tag(at, tag);
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::scalar;
    node->plain = tag == "?";
    node->at = source_.position(at);
    node->text = value;
    if (value.find('\0') != std::string::npos) throw Fatal{at, "text", "a NUL"};
    const std::size_t end = node->plain ? at + value.size() : end_of_quotes(at);
    if (expects_key()) {
      frames_.back().pending_end = end;
    } else {
      expand(*node, at);
    }
    add(std::move(node), at, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const std::size_t at = offset(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end() || found->second == nullptr) {
      throw Fatal{at, "an anchor that is complete", spelling(at) + " inside its own definition"};
    }
    if (expects_key()) throw Fatal{at, "a key", "the alias " + spelling(at)};
    add(found->second, at, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::map);
  }
  void OnMapEnd() override {
    merge(frames_.back());
    close();
  }

 private:
  std::size_t offset(const YAML::Mark& mark) const {
    return source_.offset(mark.line, mark.column);
  }

  /// The text at `at` up to the next blank or bracket, as `*base`.
  std::string spelling(std::size_t at) const {
    const std::string& text = source_.text();
    std::size_t end = at;
    while (end < text.size() && !is_delimiter(text[end])) ++end;
    return text.substr(at, end - at);
  }

  std::string null_spelling(std::size_t at) const {
    const std::string word = spelling(at);
    for (const char* null : {"~", "null", "Null", "NULL"}) {
      if (word == null) return word;
    }
    return {};
  }

  /// The offset behind the quotes that begin at `at`: yaml-cpp takes the end of the file for a
  /// quote.
  std::size_t end_of_quotes(std::size_t at) const {
    const std::string& text = source_.text();
    while (at < text.size() && (text[at] == '&' || text[at] == '!')) {  // an anchor before it
      at = text.find_first_not_of(" \t\n", std::min(text.size(), text.find_first_of(" \t\n", at)));
    }
    if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return at;  // a block scalar
    const char quote = text[at];
    for (std::size_t i = at + 1; i < text.size(); ++i) {
      if (text[i] == '\\' && quote == '"') {
        ++i;
      } else if (text[i] == quote && quote == '\'' && text.substr(i, 2) == "''") {
        ++i;
      } else if (text[i] == quote) {
        return i + 1;
      }
    }
    throw Fatal{at, "a closing quote", "the end of the file"};
  }

  /// yaml-cpp takes a word on a line of its own for a key with nothing as its value.
  void require_colon(const Frame& frame) const {
    const std::string& text = source_.text();
    const std::size_t next = text.find_first_not_of(" \t\n", frame.pending_end);
    if (next != std::string::npos && text[next] == ':') return;
    throw Fatal{std::min(frame.pending_end, text.size()),
                "a colon after " + shown(frame.pending->key), "none"};
  }

  [[noreturn]] void refuse_as_key(std::size_t at, std::string_view name) const {
    const std::string& text = source_.text();
    int depth = 0;
    std::size_t i = at;
    for (; i < text.size(); ++i) {
      if (text[i] == '[' || text[i] == '{') ++depth;
      if ((text[i] == ']' || text[i] == '}') && --depth == 0) break;
    }
    if (i == text.size() && depth > 0) {
      throw Fatal{at, std::string("a closing bracket for this ") + text[at], "the end of the file"};
    }
    throw Fatal{at, "a key", std::string(name)};
  }

  bool expects_key() const {
    return !frames_.empty() && frames_.back().node->is_map() && !frames_.back().pending;
  }

  void refuse_tag(std::size_t at, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Fatal{at, "a value without a tag", "the tag " + shown(tag)};
  }

  void expand(Node& node, std::size_t at) {
    if (placeholders_ == Placeholders::keep || node.text.find('$') == std::string::npos) return;
    Expansion expansion = expand_placeholders(node.text, environment_);
    if (expansion.replaced) {
      node.hidden = true;
      node.written = node.text;
      node.plain = true;  // in quotes too: they are needed inside { } and [ ]
    }
    node.unknown = expansion.unresolved || !expansion.mistakes.empty();
    constexpr std::size_t kReportedMax = 16;
    if (expansion.mistakes.size() > kReportedMax) expansion.mistakes.resize(kReportedMax);
    for (const Expansion::Mistake& mistake : expansion.mistakes) {
      diagnostics_.expected(placeholder_position(at, mistake.nth), mistake.expected, mistake.got);
    }
    node.text = std::move(expansion.text);
  }

  Position placeholder_position(std::size_t at, std::size_t nth) const {
    std::size_t found = source_.text().find("${", at);
    while (nth-- > 0 && found != std::string::npos) found = source_.text().find("${", found + 2);
    return source_.position(found == std::string::npos ? at : found);
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    const std::size_t at = offset(mark);
    refuse_tag(at, tag);
    const std::string_view name = kind == Node::Kind::list ? "a list" : "a mapping";
    if (expects_key()) refuse_as_key(at, name);
    if (frames_.size() == kDepthMax) {
      throw Fatal{at, "at most " + std::to_string(kDepthMax) + " lists and mappings in each other",
                  "another"};
    }
    Frame frame;
    frame.node = std::make_shared<Node>();
    frame.node->kind = kind;
    frame.node->at = source_.position(at);
    frame.anchor = anchor;
    if (anchor != 0) anchors_[anchor] = nullptr;  // known, but not complete
    frames_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(std::move(frame.node), source_.text().size(), frame.anchor);
  }

  /// Puts a complete node into the list or mapping around it.
  void add(NodePtr node, std::size_t at, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node->is_map() && !frame.pending) {
      add_key(frame, *node);
      return;
    }
    weigh(frame, *node, at);
    if (frame.node->is_list()) {
      frame.node->items.push_back(std::move(node));
    } else if (frame.pending_is_merge) {
      frame.merged.push_back(std::move(node));
      frame.pending.reset();
    } else {
      frame.pending->value = std::move(node);
      const auto [first, is_new] = frame.keys.emplace(frame.pending->key, frame.pending->key_at);
      if (is_new) {
        frame.node->entries.push_back(std::move(*frame.pending));
      } else {
        duplicate(*frame.pending, first->second);
      }
      frame.pending.reset();
    }
  }

  void add_key(Frame& frame, const Node& key) {
    Node::Entry entry;
    entry.key = key.text;
    entry.key_at = key.at;
    frame.pending_is_merge = key.is_scalar() && key.plain && key.text == "<<";
    if (frame.pending_is_merge) {
      const auto [first, is_new] = frame.keys.emplace("<<", key.at);
      if (!is_new) duplicate(entry, first->second);
    }
    frame.pending = std::move(entry);
  }

  void duplicate(const Node::Entry& entry, const Position& first) {
    diagnostics_.expected(entry.key_at, "each key once",
                          shown(entry.key) + " again (first at " + first.line_and_column() + ")");
  }

  /// Counts what a walk will visit: aliases of aliases grow fast.
  void weigh(Frame& frame, const Node& child, std::size_t at) {
    frame.node->weight += child.weight;
    if (frame.node->weight > kValuesMax) {
      throw Fatal{at < source_.text().size() ? at : 0,
                  "at most " + std::to_string(kValuesMax) + " values, those of aliases included",
                  "more"};
    }
  }

  /// Adds the entries that `<<` brings: own keys win, then the first of several mappings.
  void merge(Frame& frame) {
    for (const NodePtr& value : frame.merged) {
      if (value->is_map()) {
        merge_entries(frame, *value);
        continue;
      }
      const bool maps =
          value->is_list() && std::all_of(value->items.begin(), value->items.end(),
                                          [](const NodePtr& n) { return n->is_map(); });
      if (!maps) {
        diagnostics_.expected(frame.keys.at("<<"), "a mapping or a list of mappings after <<",
                              value->got());
        continue;
      }
      for (const NodePtr& item : value->items) merge_entries(frame, *item);
    }
  }

  static void merge_entries(Frame& frame, const Node& from) {
    for (const Node::Entry& entry : from.entries) {
      if (frame.keys.emplace(entry.key, entry.key_at).second) frame.node->entries.push_back(entry);
    }
  }

  const Source& source_;
  const Environment* environment_;
  Placeholders placeholders_;
  Diagnostics& diagnostics_;
  int documents_ = 0;
  NodePtr root_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, NodePtr> anchors_;
};

struct Translation {
  std::string_view theirs;
  std::string_view expected;
};

/// How yaml-cpp's messages begin, and what they mean to somebody who looks at the place.
constexpr std::array kTranslations{
    Translation{"end of map not found", "a key in line with the others"},
    Translation{"end of map flow not found", "a comma or } after this value"},
    Translation{"end of sequence not found", "a list item in line with the others"},
    Translation{"end of sequence flow not found", "a comma or ] after this value"},
    Translation{"illegal map value", "one `key: value` on a line (a text with `: ` needs quotes)"},
    Translation{"illegal map key", "a key where a mapping may begin"},
    Translation{"illegal block entry", "a list item where a list may begin"},
    Translation{"illegal flow end", "no ] or } without its opening bracket"},
    Translation{"unknown escape character", R"(an escape such as \n (a backslash itself is \\))"},
    Translation{"invalid unicode", R"(a Unicode character after \u)"},
    Translation{"bad YAML version", "%YAML 1.2"},
    Translation{"unknown token", "a value (one that begins with a special character needs quotes)"},
    Translation{"illegal EOF in scalar", "a closing quote"},
    Translation{"illegal document indicator in scalar", "a closing quote"},
    Translation{"illegal character in scalar", "more indentation"},
    Translation{"illegal tab when looking for indentation", "spaces as indentation"},
    Translation{"the referenced anchor is not defined", "an anchor that is defined above"},
    Translation{"alias not found after *", "the name of an anchor after *"},
    Translation{"anchor not found after &", "a name after &"},
};

std::string expected_instead_of(const std::string& message) {
  for (const Translation& translation : kTranslations) {
    if (message.compare(0, translation.theirs.size(), translation.theirs) == 0)
      return std::string(translation.expected);
  }
  return "well-formed YAML (" + message + ")";
}

std::string word_at(const Source& source, std::size_t at) {
  const std::string& text = source.text();
  if (at >= text.size()) return "the end of the file";
  if (text[at] == '\n') return "the end of the line";
  std::size_t end = at + 1;
  while (end < text.size() && !is_delimiter(text[end])) ++end;
  return shown(std::string_view(text).substr(at, end - at));
}

/// The offset of a tab that indents the line at `at` or the line before it, where YAML allows none.
std::optional<std::size_t> indenting_tab(const Source& source, std::size_t at) {
  const auto tab_of_line = [&](std::size_t offset) -> std::optional<std::size_t> {
    const std::string_view line = source.line_at(offset);
    const std::size_t tab = line.find_first_not_of(' ');
    if (tab == std::string_view::npos || line[tab] != '\t') return std::nullopt;
    if (line.find_first_not_of(" \t") == std::string_view::npos) return std::nullopt;
    return static_cast<std::size_t>(line.data() - source.text().data()) + tab;
  };
  const std::string_view line = source.line_at(at);
  const auto start = static_cast<std::size_t>(line.data() - source.text().data());
  if (start > 0) {
    if (const auto tab = tab_of_line(start - 1)) return tab;
  }
  return tab_of_line(start);
}

void report_syntax(const Source& source, const YAML::Exception& error, Diagnostics& diagnostics) {
  const std::size_t at = source.offset(error.mark.line, error.mark.column);
  if (const auto tab = indenting_tab(source, at)) {
    diagnostics.expected(source.position(*tab), "spaces as indentation", "a tab");
    return;
  }
  std::string_view hint;
  if (source.line_at(at).find("${") != std::string_view::npos) {
    hint = "; inside { } and [ ] a placeholder needs quotes";
  }
  diagnostics.expected(source.position(at), expected_instead_of(error.msg), word_at(source, at),
                       hint);
}

}  // namespace

Parsed parse(std::string_view bytes, const Environment* environment, Placeholders placeholders,
             std::shared_ptr<const std::string> file) {
  Parsed parsed;
  const Source source(bytes, std::move(file));
  if (source.mistake()) {
    parsed.diagnostics.add(*source.mistake());
    return parsed;
  }
  Diagnostics syntax;
  TreeBuilder builder(source, environment, placeholders, parsed.diagnostics);
  try {
    std::istringstream stream(source.text());
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {}
  } catch (const Fatal& fatal) {
    syntax.expected(source.position(fatal.offset), fatal.expected, fatal.got);
  } catch (const YAML::Exception& error) {
    report_syntax(source, error, syntax);
  }
  if (!syntax.empty()) {
    parsed.diagnostics = std::move(syntax);
    return parsed;
  }
  parsed.root = builder.root();
  if (parsed.root == nullptr) parsed.root = std::make_shared<Node>();
  return parsed;
}

}  // namespace otp::config
