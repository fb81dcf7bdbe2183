#include "otp/config/json_schema.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "otp/config/child_keys.h"
#include "otp/config/decode.h"

namespace otp::config {
namespace {

/// A JSON value that is written with its members in the order in which they were added.
class Json {
 public:
  static Json text(std::string_view value) { return Json(quoted(value)); }
  static Json raw(std::string value) { return Json(std::move(value)); }
  static Json object() { return Json('{'); }
  static Json array() { return Json('['); }

  Json& add(std::string_view key, Json value) {
    members_.emplace_back(quoted(key) + ": ", std::move(value));
    return *this;
  }
  Json& add(Json value) {
    members_.emplace_back("", std::move(value));
    return *this;
  }
  bool empty() const { return members_.empty(); }

  std::string write(std::size_t indent = 0) const {
    if (open_ == 0) return scalar_;
    const char close = open_ == '{' ? '}' : ']';
    if (members_.empty()) return {open_, close};
    std::string out(1, open_);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      out += i == 0 ? "\n" : ",\n";
      out +=
          std::string(indent + 2, ' ') + members_[i].first + members_[i].second.write(indent + 2);
    }
    return out + "\n" + std::string(indent, ' ') + close;
  }

 private:
  explicit Json(std::string scalar) : scalar_(std::move(scalar)) {}
  explicit Json(char open) : open_(open) {}

  static std::string quoted(std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (byte < 0x20) {
        out += "\\u00";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
      } else {
        out += c;
      }
    }
    return out + '"';
  }

  std::string scalar_;
  char open_ = 0;
  std::vector<std::pair<std::string, Json>> members_;
};

/// A scalar may be a placeholder instead of what its type says.
constexpr std::string_view kPlaceholder = "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:.*)?\\}";

class SchemaWriter {
 public:
  Json application(const ApplicationDecl& application) {
    Json properties = Json::object();
    properties.add("application", Json::object().add("const", Json::text(application.name)));
    properties.add("imports", typed("array").add("items", typed("string")));
    properties.add("run_dir", any_scalar());
    Json required = Json::array();
    required.add(Json::text("application"));
    if (application.settings) {
      const TypeDescription& settings = application.settings->describe();
      properties.add("settings", record(settings));
      if (has_required(settings)) required.add(Json::text("settings"));
    }
    required.add(Json::text("supervisor"));
    properties.add("supervisor", reference("supervisor"));
    Json supervisor_definition = supervisor();
    Json child_definition = child(application);
    Json definitions = Json::object();
    definitions.add("supervisor", std::move(supervisor_definition));
    definitions.add("child", std::move(child_definition));
    for (auto& [name, definition] : records_) definitions.add(name, std::move(definition));

    Json schema = Json::object();
    schema.add("$schema", Json::text("https://json-schema.org/draft/2020-12/schema"));
    schema.add("title", Json::text("Configuration of " + application.name));
    schema.add("type", Json::text("object"));
    schema.add("properties", std::move(properties));
    schema.add("required", std::move(required));
    schema.add("additionalProperties", Json::raw("false"));
    schema.add("$defs", std::move(definitions));
    return schema;
  }

 private:
  static Json reference(std::string_view name) {
    return Json::object().add("$ref", Json::text("#/$defs/" + std::string(name)));
  }

  static bool has_required(const TypeDescription& type) {
    for (const FieldDescription& field : type.fields) {
      if (field.required) return true;
    }
    return false;
  }

  static Json typed(std::string_view type) { return Json::object().add("type", Json::text(type)); }

  static Json described(Json schema, const TypeDescription& type) {
    schema.add("description", Json::text(expectation(type)));
    return schema;
  }

  static Json placeholder_or(Json schema) {
    Json pattern = typed("string");
    pattern.add("pattern", Json::text(kPlaceholder));
    Json any = Json::array();
    any.add(std::move(schema)).add(std::move(pattern));
    return Json::object().add("anyOf", std::move(any));
  }

  static Json words(const TypeDescription& type) {
    Json list = Json::array();
    for (const std::string_view word : type.words) list.add(Json::text(word));
    return Json::object().add("enum", std::move(list));
  }

  static Json integer(const TypeDescription& type) {
    Json schema = typed("integer");
    schema.add("minimum", Json::raw(std::to_string(type.min)));
    schema.add("maximum", Json::raw(std::to_string(type.max)));
    return schema;
  }

  static Json pattern(std::string_view text) {
    return typed("string").add("pattern", Json::text(text));
  }

  static Json duration(const TypeDescription& type) {
    std::string form = "[0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d)";
    if (type.allows_infinity) form += "|infinity";
    for (const std::string_view word : type.words) form += "|" + std::string(word);
    return pattern("^(" + form + "|" + std::string(kPlaceholder) + ")$");
  }

  static Json bytes() {
    return pattern("^([0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|TiB)|" + std::string(kPlaceholder) + ")$");
  }

  /// A text: YAML editors take `012` or `no` for other types, which are texts here too.
  static Json any_scalar() {
    Json types = Json::array();
    for (const char* type : {"string", "number", "boolean", "null"}) types.add(Json::text(type));
    return Json::object().add("type", std::move(types));
  }

  Json schema_of(const TypeDescription& type) {
    switch (type.kind) {
      case TypeKind::boolean: return described(placeholder_or(typed("boolean")), type);
      case TypeKind::integer: return described(placeholder_or(integer(type)), type);
      case TypeKind::number: return described(placeholder_or(typed("number")), type);
      case TypeKind::duration: return described(duration(type), type);
      case TypeKind::bytes: return described(bytes(), type);
      case TypeKind::word: return described(placeholder_or(words(type)), type);
      case TypeKind::list: return typed("array").add("items", schema_of(type.element()));
      case TypeKind::map:
        return typed("object").add("additionalProperties", schema_of(type.element()));
      case TypeKind::optional: return schema_of(type.element());
      case TypeKind::record: return record_reference(type);
      default: return described(any_scalar(), type);
    }
  }

  /// `bank::Limits` as a part of a JSON pointer: `bank.Limits`.
  static std::string definition_name(const std::string& type) {
    std::string name;
    for (const char c : type) {
      const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (kept || c == '_') {
        name += c;
      } else if (!name.empty() && name.back() != '.') {
        name += '.';
      }
    }
    return name;
  }

  /// Structs are defined once, since they may contain themselves.
  Json record_reference(const TypeDescription& type) {
    const std::string name = definition_name(type.name);
    if (records_.emplace(name, Json::object()).second) {
      Json definition = record(type);
      records_.insert_or_assign(name, std::move(definition));
    }
    return reference(name);
  }

  void add_fields(const TypeDescription& type, Json& properties, Json& required) {
    for (const FieldDescription& field : type.fields) {
      properties.add(field.name, schema_of(field.type()));
      if (field.required) required.add(Json::text(field.name));
    }
  }

  static Json closed(Json properties, Json required) {
    Json schema = typed("object");
    schema.add("properties", std::move(properties));
    if (!required.empty()) schema.add("required", std::move(required));
    schema.add("additionalProperties", Json::raw("false"));
    return schema;
  }

  Json record(const TypeDescription& type) {
    Json properties = Json::object();
    Json required = Json::array();
    add_fields(type, properties, required);
    return closed(std::move(properties), std::move(required));
  }

  Json supervisor() {
    Json properties = Json::object();
    Json required = Json::array();
    add_fields(describe<SupervisorKeys>(), properties, required);
    properties.add("children", typed("array").add("items", reference("child")));
    required.add(Json::text("children"));
    return closed(std::move(properties), std::move(required));
  }

  /// One alternative for each server, as each has its own arguments, and one for a supervisor.
  Json child(const ApplicationDecl& application) {
    Json alternatives = Json::array();
    for (const ServerDecl& server : application.servers) {
      Json properties = Json::object();
      Json required = Json::array();
      add_fields(describe<WorkerKeys>(), properties, required);
      properties.add("start", Json::object().add("const", Json::text(server.name)));
      required.add(Json::text("start"));
      if (server.args) {
        properties.add("args", record(server.args->describe()));
        if (has_required(server.args->describe())) required.add(Json::text("args"));
      }
      alternatives.add(closed(std::move(properties), std::move(required)));
    }
    Json properties = Json::object();
    Json required = Json::array();
    add_fields(describe<SubtreeKeys>(), properties, required);
    properties.add("supervisor", reference("supervisor"));
    required.add(Json::text("supervisor"));
    alternatives.add(closed(std::move(properties), std::move(required)));
    return Json::object().add("oneOf", std::move(alternatives));
  }

  std::map<std::string, Json> records_;
};

}  // namespace

std::string json_schema(const ApplicationDecl& application) {
  return SchemaWriter().application(application).write() + "\n";
}

}  // namespace otp::config
