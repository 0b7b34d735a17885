#include "docs/json_schema.h"

#include <algorithm>
#include <map>
#include <regex>
#include <stdexcept>

#include "support/expected_text.h"

namespace sinter::test {
namespace {

bool has_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  throw std::runtime_error("a schema has the type " + type);
}

/// One walk over a value. `document` is the schema file in which "#/..." is looked up.
class Walk {
 public:
  std::vector<std::string> violations;

  void check(const Json& document, const Json& schema, const Json& value, const std::string& at) {
    for (const auto& [keyword, argument] : schema.items())
      apply(document, schema, keyword, argument, value, at);
  }

 private:
  void wrong(const std::string& at, const std::string& what) {
    violations.push_back((at.empty() ? "/" : at) + ": " + what);
  }

  void follow(const Json& document, const std::string& reference, const Json& value,
              const std::string& at) {
    constexpr std::string_view kSchema = ".schema.json";
    if (reference.starts_with("#")) {
      check(document, document.at(Json::json_pointer(reference.substr(1))), value, at);
    } else if (reference.ends_with(kSchema)) {
      const Json& other = schema_named(reference.substr(0, reference.size() - kSchema.size()));
      check(other, other, value, at);
    } else {
      throw std::runtime_error("a schema refers to " + reference);
    }
  }

  void one_of(const Json& document, const Json& schemas, const Json& value, const std::string& at) {
    size_t fitting = 0;
    std::string reasons;
    for (const Json& schema : schemas) {
      Walk walk;
      walk.check(document, schema, value, at);
      fitting += walk.violations.empty();
      if (!walk.violations.empty()) reasons += "; " + walk.violations[0];
    }
    if (fitting != 1) wrong(at, std::to_string(fitting) + " alternatives fit" + reasons);
  }

  void apply(const Json& document, const Json& schema, const std::string& keyword,
             const Json& argument, const Json& value, const std::string& at) {
    if (keyword == "type") {
      const auto fits = [&](const Json& type) { return has_type(value, type); };
      if (argument.is_array() ? std::none_of(argument.begin(), argument.end(), fits)
                              : !fits(argument))
        wrong(at, value.dump() + " is not of type " + argument.dump());
    } else if (keyword == "const") {
      if (value != argument) wrong(at, value.dump() + " is not " + argument.dump());
    } else if (keyword == "enum") {
      if (std::find(argument.begin(), argument.end(), value) == argument.end())
        wrong(at, value.dump() + " is not one of " + argument.dump());
    } else if (keyword == "required") {
      for (const Json& name : argument)
        if (value.is_object() && !value.contains(name)) wrong(at, "lacks " + name.dump());
    } else if (keyword == "properties") {
      if (!value.is_object()) return;
      for (const auto& [name, member] : value.items())
        if (argument.contains(name))
          check(document, argument[name], member, at + "/" + name);
        else if (!schema.contains("additionalProperties"))
          wrong(at, "has \"" + name + "\", which the schema does not describe");
    } else if (keyword == "additionalProperties") {
      if (!value.is_object()) return;
      for (const auto& [name, member] : value.items()) {
        if (schema.contains("properties") && schema["properties"].contains(name)) continue;
        if (argument.is_object())
          check(document, argument, member, at + "/" + name);
        else if (!argument.get<bool>())
          wrong(at, "has \"" + name + "\"");
      }
    } else if (keyword == "items") {
      for (size_t i = 0; value.is_array() && i < value.size(); ++i)
        check(document, argument, value[i], at + "/" + std::to_string(i));
    } else if (keyword == "minItems" || keyword == "maxItems") {
      const bool least = keyword == "minItems";
      if (value.is_array() &&
          (least ? value.size() < argument.get<size_t>() : value.size() > argument.get<size_t>()))
        wrong(at, "has " + std::to_string(value.size()) + " items");
    } else if (keyword == "minimum" || keyword == "maximum" || keyword == "exclusiveMinimum") {
      const bool fits = !value.is_number()     ? true
                        : keyword == "minimum" ? value >= argument
                        : keyword == "maximum" ? value <= argument
                                               : value > argument;
      if (!fits) wrong(at, value.dump() + " is beyond the " + keyword + " " + argument.dump());
    } else if (keyword == "pattern") {
      if (value.is_string() &&
          !std::regex_search(value.get<std::string>(), std::regex(argument.get<std::string>())))
        wrong(at, value.dump() + " does not match " + argument.dump());
    } else if (keyword == "oneOf") {
      one_of(document, argument, value, at);
    } else if (keyword == "$ref") {
      follow(document, argument, value, at);
    } else if (keyword != "$schema" && keyword != "title" && keyword != "description" &&
               keyword != "default" && keyword != "$defs") {
      throw std::runtime_error("a schema has the keyword " + keyword);
    }
  }
};

}  // namespace

const Json& schema_named(const std::string& name) {
  static std::map<std::string, Json> schemas;
  auto at = schemas.find(name);
  if (at == schemas.end())
    at = schemas
             .emplace(name, Json::parse(read_text(SINTER_TESTS_DIR "/../docs/schemas/" + name +
                                                  ".schema.json")))
             .first;
  return at->second;
}

std::vector<std::string> schema_violations(const std::string& name, const Json& value) {
  const Json& schema = schema_named(name);
  Walk walk;
  walk.check(schema, schema, value, "");
  return walk.violations;
}

}  // namespace sinter::test
