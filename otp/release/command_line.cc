#include "otp/release/command_line.h"

#include <algorithm>
#include <set>

#include "otp/release/posix.h"

namespace otp::release {
namespace {

using Failed = Outcome<CommandLine>;

/// Takes an option's value. Returns an error line or nothing.
std::string set_value(CommandLine& line, const std::string& name, const std::string& value) {
  if (value.empty()) return "option " + name + " expects a value, got none";
  if (name == "--config") line.config = value;
  if (name == "--run-dir") line.run_dir = value;
  if (name == "--timeout") {
    line.timeout = parse_duration(value);
    if (!line.timeout)
      return "option --timeout expects a duration such as 30s, got '" + value + "'";
  }
  return "";
}

bool takes_value(const std::string& name) {
  return name == "--config" || name == "--run-dir" || name == "--timeout";
}

}  // namespace

Outcome<CommandLine> parse_command_line(const std::vector<std::string>& words) {
  CommandLine line;
  std::set<std::string> seen;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      line.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      if (line.command.empty()) {
        line.command = word;
      } else {
        line.operands.push_back(word);
      }
      continue;
    }
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (!seen.insert(name).second) return Failed::failure("option " + name + " is given twice");
    if (takes_value(name)) {
      bool inside = equals != std::string::npos;
      bool follows = !inside && i + 1 < words.size();
      std::string value = inside ? word.substr(equals + 1) : follows ? words[++i] : "";
      std::string error = set_value(line, name, value);
      if (!error.empty()) return Failed::failure(error);
    } else if (word == "--json") {
      line.json = true;
    } else if (word == "--no-env") {
      line.no_env = true;
    } else if (word == "--help" || word == "-h") {
      line.help = true;
    } else {
      return Failed::failure("unknown option '" + word + "'");
    }
  }
  return line;
}

}  // namespace otp::release
