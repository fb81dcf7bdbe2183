#include "otp/observe/tree_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "otp/base/enum_names.h"
#include "otp/base/utf8.h"
#include "otp/observe/json_text.h"

namespace otp::observe {
namespace {

struct Lines {
  std::string_view branch, last, pass, space;
};
constexpr Lines kBoxLines{"\u251c\u2500 ", "\u2514\u2500 ", "\u2502  ", "   "};
constexpr Lines kAsciiLines{"|- ", "`- ", "|  ", "   "};

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

std::string printable(std::string_view text) {
  std::string out;
  append_valid_utf8(&out, text);
  for (char& letter : out) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = '?';
  }
  return out;
}

// Columns that a text takes, but for letters of double width.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xc0) != 0x80;
  }));
}

class Drawing {
 public:
  explicit Drawing(const TreeOptions& options)
      : options_(options), lines_(options.ascii ? kAsciiLines : kBoxLines) {}

  // `own` leads to the node itself, `below` to its children.
  void add(const TreeNode& node, const std::string& own, const std::string& below) {
    rows_.push_back(row_of(node, own));
    const size_t count = node.children.size();
    const size_t shown =
        options_.children_max == 0 ? count : std::min(count, options_.children_max);
    const uint64_t hidden = count - shown + node.children_left_out;
    for (size_t index = 0; index < shown; ++index) {
      const bool last = index + 1 == count && hidden == 0;
      add(node.children[index], below + std::string(last ? lines_.last : lines_.branch),
          below + std::string(last ? lines_.space : lines_.pass));
    }
    if (hidden > 0) {
      Row row;
      row[0] = below + std::string(lines_.last) + "... " + std::to_string(hidden) + " more";
      rows_.push_back(std::move(row));
    }
  }

  std::string text() const {
    std::array<size_t, kColumns> widths{};
    for (const Row& row : rows_) {
      for (size_t column = 0; column < kColumns; ++column) {
        widths[column] = std::max(widths[column], width_of(row[column]));
      }
    }
    std::string out;
    for (const Row& row : rows_) {
      for (size_t column = 0; column < kColumns; ++column) {
        if (widths[column] == 0) continue;
        out += row[column];
        out.append(widths[column] - width_of(row[column]) + 2, ' ');
      }
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n';
    }
    return out;
  }

 private:
  static Row row_of(const TreeNode& node, const std::string& lead) {
    std::string label = lead + printable(node.id);
    if (!node.name.empty() && node.name != node.id) label += " (" + printable(node.name) + ")";
    std::string counts;
    if (node.mailbox_letters) counts += "mailbox=" + std::to_string(*node.mailbox_letters);
    if (node.restarts) {
      counts += (counts.empty() ? "restarts=" : " restarts=") + std::to_string(*node.restarts);
    }
    return {std::move(label),
            node.pid.empty() ? "-" : printable(node.pid),
            std::string(enum_name(node.state)),
            std::string(enum_name(node.kind)),
            printable(node.strategy),
            printable(node.restart),
            printable(node.shutdown),
            std::move(counts)};
  }

  const TreeOptions& options_;
  const Lines& lines_;
  std::vector<Row> rows_;
};

void write_json(JsonWriter& json, const TreeNode& node) {
  const auto optional = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) json.key(key).string(value);
  };
  json.begin_object().key("id").string(node.id);
  optional("name", node.name);
  json.key("kind").string(enum_name(node.kind));
  json.key("state").string(enum_name(node.state));
  json.key("pid");
  node.pid.empty() ? json.null() : json.string(node.pid);
  optional("start", node.start);
  optional("strategy", node.strategy);
  optional("restart", node.restart);
  optional("shutdown", node.shutdown);
  if (node.mailbox_letters) json.key("mailbox").number(*node.mailbox_letters);
  if (node.restarts) json.key("restarts").number(*node.restarts);
  if (node.kind == TreeKind::supervisor || !node.children.empty()) {
    json.key("children").begin_array();
    for (const TreeNode& child : node.children) write_json(json, child);
    json.end_array();
  }
  if (node.children_left_out > 0) json.key("children_left_out").number(node.children_left_out);
  json.end_object();
}

}  // namespace

std::string tree_text(const TreeNode& root, const TreeOptions& options) {
  Drawing drawing(options);
  drawing.add(root, "", "");
  return drawing.text();
}

std::string tree_json(const TreeNode& root) {
  std::string out;
  JsonWriter json(&out);
  write_json(json, root);
  return out;
}

}  // namespace otp::observe
