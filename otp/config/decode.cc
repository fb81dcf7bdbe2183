#include "otp/config/decode.h"

#include <algorithm>
#include <utility>

#include "otp/config/scalar.h"

namespace otp::config {
namespace {

std::string integer_range(const TypeDescription& type) {
  return "from " + std::to_string(type.min) + " to " + std::to_string(type.max);
}

std::string tick_name(int64_t tick_ns) {
  return tick_ns == 1 ? "" : " in steps of " + duration_text(tick_ns);
}

std::string duration_expectation(const TypeDescription& type) {
  std::string text = "a duration such as 250ms, 5s or 1.5h of at most " +
                     duration_text(type.duration_max_ns) + tick_name(type.tick_ns);
  std::vector<std::string_view> words = type.words;
  if (type.allows_infinity) words.insert(words.begin(), "infinity");
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

/// A scalar read by the rules of its type: the value, or the hint of a near miss.
struct Read {
  bool good = false;
  ScalarValue value;
  std::string hint;
};

std::string meant(const std::string& text) {
  return text.empty() ? "" : "; did you mean " + text + "?";
}

Read read_boolean(const Node& node) {
  Read read;
  read.value.boolean = node.text == "true";
  read.good = node.plain && (node.text == "true" || node.text == "false");
  if (!node.plain && (node.text == "true" || node.text == "false")) {
    read.hint = meant(node.text + " without quotes");
  } else if (!read.good && node.plain) {
    for (const std::string_view yes : {"yes", "on", "y"}) {
      if (did_you_mean(node.text, {yes}).size() > 0 && node.text.size() == yes.size()) {
        read.hint = meant("true");
      }
    }
    for (const std::string_view no : {"no", "off", "n"}) {
      if (did_you_mean(node.text, {no}).size() > 0 && node.text.size() == no.size()) {
        read.hint = meant("false");
      }
    }
    if (read.hint.empty()) read.hint = did_you_mean(node.text, {"true", "false"});
  }
  return read;
}

Read read_integer(const Node& node, const TypeDescription& type) {
  Read read;
  const auto reading = read_whole_number(node.text);
  if (!node.plain) {
    if (reading.missed == Missed::no) read.hint = meant(node.text + " without quotes");
    return read;
  }
  if (reading.missed != Missed::no) return read;
  const WholeNumber number = reading.value;
  // The magnitude of the least int64_t is not an int64_t.
  const uint64_t least = 0 - static_cast<uint64_t>(type.min);
  if (number.negative ? number.magnitude > least : number.magnitude > type.max) return read;
  read.good = true;
  read.value.negative = number.negative;
  read.value.magnitude = number.magnitude;
  return read;
}

Read read_number_node(const Node& node, const TypeDescription& type) {
  Read read;
  const auto reading = read_number(node.text);
  if (reading.missed == Missed::no && !node.plain) {
    read.hint = meant(node.text + " without quotes");
  }
  read.good = node.plain && reading.missed == Missed::no && reading.value <= type.number_max &&
              reading.value >= -type.number_max;
  read.value.number = reading.value;
  return read;
}

Read read_duration_node(const Node& node, const TypeDescription& type) {
  Read read;
  if (type.allows_infinity && node.text == "infinity") {
    read.good = true;
    read.value.infinite = true;
    return read;
  }
  for (std::size_t i = 0; i < type.words.size(); ++i) {
    if (node.text == type.words[i]) {
      read.good = true;
      read.value.is_word = true;
      read.value.word = i;
      return read;
    }
  }
  const auto reading = read_duration(node.text);
  read.good = reading.missed == Missed::no && reading.value <= type.duration_max_ns &&
              reading.value % type.tick_ns == 0;
  read.value.nanoseconds = reading.value;
  if (reading.missed == Missed::wrong) {
    std::vector<std::string_view> words = type.words;
    if (type.allows_infinity) words.push_back("infinity");
    read.hint = meant(near_duration(node.text));
    if (read.hint.empty()) read.hint = did_you_mean(node.text, words);
  }
  return read;
}

Read read_bytes_node(const Node& node) {
  Read read;
  const auto reading = read_bytes(node.text);
  read.good = reading.missed == Missed::no;
  read.value.magnitude = reading.value;
  if (reading.missed == Missed::wrong) read.hint = meant(near_bytes(node.text));
  return read;
}

Read read_word(const Node& node, const TypeDescription& type) {
  Read read;
  for (std::size_t i = 0; i < type.words.size(); ++i) {
    if (node.text == type.words[i]) {
      read.good = true;
      read.value.word = i;
    }
  }
  if (!read.good) read.hint = did_you_mean(node.text, type.words);
  return read;
}

Read read_scalar(const Node& node, const TypeDescription& type) {
  Read read;
  switch (type.kind) {
    case TypeKind::boolean: read = read_boolean(node); break;
    case TypeKind::integer: read = read_integer(node, type); break;
    case TypeKind::number: read = read_number_node(node, type); break;
    case TypeKind::duration: read = read_duration_node(node, type); break;
    case TypeKind::bytes: read = read_bytes_node(node); break;
    case TypeKind::word: read = read_word(node, type); break;
    case TypeKind::character: read.good = node.text.size() == 1; break;
    default: read.good = true; break;
  }
  read.value.text = node.text;
  if (node.hidden) read.hint.clear();  // a hint would show what the environment holds
  return read;
}

/// `nothing` is a text as it stands where a text is expected: `null`, `~`. A missing text is none.
bool is_spelled_text(const Node& node, TypeKind kind) {
  return node.is_nothing() && !node.text.empty() &&
         (kind == TypeKind::string || kind == TypeKind::secret || kind == TypeKind::reference ||
          kind == TypeKind::text || kind == TypeKind::word);
}

std::string got(const Node& node, const TypeDescription& type) {
  if (type.kind == TypeKind::secret && node.is_scalar()) return "another value";
  return node.got();
}

}  // namespace

std::string expectation(const TypeDescription& type) {
  switch (type.kind) {
    case TypeKind::boolean: return "true or false";
    case TypeKind::integer: return "an integer " + integer_range(type);
    case TypeKind::number: return "a decimal number such as 4.5";
    case TypeKind::character: return "one ASCII character";
    case TypeKind::string: return "a text";
    case TypeKind::secret: return "a secret text";
    case TypeKind::duration: return duration_expectation(type);
    case TypeKind::bytes: return "a size such as 512B, 64KiB or 1.5GiB of at most 1024TiB";
    case TypeKind::word: return listed(type.words);
    case TypeKind::text: return std::string(type.expected);
    case TypeKind::reference:
      return "the name of a child that runs " +
             std::string(otp::internal::without_qualifiers(type.server));
    case TypeKind::optional: return expectation(type.element());
    case TypeKind::list: return "a list";
    case TypeKind::map: return "a mapping";
    case TypeKind::record: return "a mapping";
  }
  return "a value";
}

void Decoder::decode(const Node& node, const TypeDescription& type, void* place) {
  switch (type.kind) {
    case TypeKind::optional: return decode_optional(node, type, place);
    case TypeKind::list: return decode_list(node, type, place);
    case TypeKind::map: return decode_map(node, type, place);
    case TypeKind::record: return decode_record(node, type, place);
    default: return decode_scalar(node, type, place);
  }
}

void Decoder::decode_scalar(const Node& node, const TypeDescription& type, void* place) {
  if (node.unknown) return;
  if (!node.is_scalar() && !is_spelled_text(node, type.kind)) {
    diagnostics_.expected(node.at, expectation(type), got(node, type));
    return;
  }
  Read read = read_scalar(node, type);
  std::optional<std::string> name;
  if (type.kind == TypeKind::reference && resolve_) {
    name = resolve_(node, type.server);
    if (!name) return;  // reported
    read.value.text = *name;
  }
  if (!read.good || !type.store(place, read.value)) {
    diagnostics_.expected(node.at, expectation(type), got(node, type), read.hint);
  }
}

void Decoder::decode_optional(const Node& node, const TypeDescription& type, void* place) {
  const TypeDescription& value = type.element();
  if (node.is_nothing() && !is_spelled_text(node, value.kind)) {
    type.clear(place);
    return;
  }
  if (!node.unknown) decode(node, value, type.emplace(place));
}

void Decoder::decode_list(const Node& node, const TypeDescription& type, void* place) {
  if (node.unknown) return;
  if (!node.is_list()) {
    diagnostics_.expected(node.at, "a list", node.got());
    return;
  }
  type.clear(place);
  for (const NodePtr& item : node.items) decode(*item, type.element(), type.append(place));
}

void Decoder::decode_map(const Node& node, const TypeDescription& type, void* place) {
  if (node.unknown) return;
  if (!node.is_map()) {
    diagnostics_.expected(node.at, "a mapping", node.got());
    return;
  }
  type.clear(place);
  for (const Node::Entry& entry : node.entries) {
    decode(*entry.value, type.element(), type.insert(place, entry.key));
  }
}

void Decoder::decode_record(const Node& node, const TypeDescription& type, void* place,
                            const KeyWords& words, const std::vector<std::string_view>& others) {
  if (node.unknown) return;
  if (!node.is_map()) {
    diagnostics_.expected(node.at, "a mapping", node.got());
    return;
  }
  const std::size_t mistakes = diagnostics_.size();
  check_keys(node, type, words, others);
  for (const FieldDescription& field : type.fields) {
    const Node::Entry* entry = node.find(field.name);
    if (entry != nullptr) {
      decode(*entry->value, field.type(), field.locate(place));
    } else if (field.required) {
      diagnostics_.expected(node.at,
                            "the " + std::string(words.noun) + " " + std::string(field.name) +
                                words.of() + " (" + expectation(field.type()) + ")",
                            "none");
    }
  }
  if (diagnostics_.size() == mistakes) check_problem(node, type, place);
}

void Decoder::check_keys(const Node& node, const TypeDescription& type, const KeyWords& words,
                         const std::vector<std::string_view>& others) {
  std::vector<std::string_view> known;
  for (const FieldDescription& field : type.fields) known.push_back(field.name);
  known.insert(known.end(), others.begin(), others.end());
  for (const Node::Entry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    std::string expected(words.article);
    expected.append(" ").append(words.noun).append(words.of()).append(" (");
    expected = known.empty() ? "no key here" : expected + listed(known) + ")";
    diagnostics_.expected(entry.key_at, expected, shown(entry.key), did_you_mean(entry.key, known));
  }
}

void Decoder::check_problem(const Node& node, const TypeDescription& type, const void* place) {
  if (type.problem == nullptr || node.has_unknown()) return;
  const std::optional<Problem> problem = type.problem(place);
  if (!problem) return;
  const Node::Entry* entry = node.find(problem->field);
  if (entry == nullptr) {
    diagnostics_.expected(node.at, problem->expected,
                          "the default of " + std::string(problem->field));
  } else {
    const bool secret = std::any_of(type.fields.begin(), type.fields.end(), [&](const auto& field) {
      return field.name == problem->field && field.type().kind == TypeKind::secret;
    });
    diagnostics_.expected(entry->value->at, problem->expected,
                          secret ? "another value" : entry->value->got());
  }
}

}  // namespace otp::config
