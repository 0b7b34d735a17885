#include "docs/schema_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "docs/json_schema.h"

namespace sinter::test {
namespace {

/// The type or the values that `schema` allows, with links to the definitions of the schema NAME.
std::string type_text(const std::string& name, const Json& schema) {
  if (schema.contains("$ref")) {
    const std::string text = schema["$ref"];
    const size_t slash = text.rfind('/');
    if (slash == std::string::npos)
      return fmt::format("[{}](schemas/{})", text.substr(0, text.find('.')), text);
    return fmt::format("[{}](#{}-{})", text.substr(slash + 1), name, text.substr(slash + 1));
  }
  if (schema.contains("const")) return fmt::format("`{}`", schema["const"].dump());
  const auto joined = [](const Json& list, auto show, const char* between) {
    std::string text;
    for (const Json& item : list) text += (text.empty() ? "" : between) + show(item);
    return text;
  };
  const auto shown = [&](const Json& one) { return type_text(name, one); };
  if (schema.contains("enum"))
    return joined(
        schema["enum"], [](const Json& v) { return "`" + v.dump() + "`"; }, ", ");
  if (schema.contains("oneOf")) return joined(schema["oneOf"], shown, " or ");
  if (schema["type"].is_array())
    return joined(
        schema["type"],
        [&](const Json& type) {
          Json one = schema;
          one["type"] = type;
          return shown(one);
        },
        " or ");
  const std::string type = schema["type"];
  if (type == "array") {
    const Json& items = schema["items"];
    const bool plain = items.contains("type") && !items.contains("items");
    return "list of " + shown(items) + (plain ? "s" : "");
  }
  if (type == "object" && schema.contains("additionalProperties"))
    return "object, by name: " + shown(schema["additionalProperties"]);
  return type;
}

/// A table of the members of an object, and of objects in it.
std::string members_table(const std::string& name, const Json& schema) {
  std::string text = "| member | value | meaning |\n| --- | --- | --- |\n";
  const auto add = [&](auto& self, const Json& object, const std::string& before) -> void {
    for (const auto& [member, value] : object["properties"].items()) {
      const auto& required = object["required"];
      const bool optional = std::find(required.begin(), required.end(), member) == required.end();
      text += fmt::format("| `{}{}` | {} | {}{} |\n", before, member, type_text(name, value),
                          value.value("description", ""), optional ? " (may be absent)" : "");
      if (value.contains("properties")) self(self, value, before + member + ".");
    }
  };
  add(add, schema, "");
  return text;
}

}  // namespace

std::string schema_section(const std::string& name) {
  const Json& schema = schema_named(name);
  std::string text = fmt::format("\n## {}\n\n{}\n\n{}", std::string(schema["title"]),
                                 std::string(schema["description"]), members_table(name, schema));
  if (!schema.contains("$defs")) return text;
  for (const auto& [part, definition] : schema["$defs"].items()) {
    text += fmt::format("\n### {}\n", name + " " + part);
    const Json one = Json::array({definition});
    const bool several = definition.contains("oneOf");
    if (several) text += "\nOne of:\n";
    for (const Json& form : several ? definition["oneOf"] : one) {
      text += fmt::format("\n{}\n", std::string(form["description"]));
      if (form.contains("properties")) text += "\n" + members_table(name, form);
    }
  }
  return text;
}

}  // namespace sinter::test
