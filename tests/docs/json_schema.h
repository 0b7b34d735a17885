// Checks JSON against schemas of JSON Schema draft 2020-12, of which docs/schemas uses a part:
// type, const, enum, required, properties, additionalProperties, items, minItems, maxItems,
// minimum, exclusiveMinimum, maximum, pattern, oneOf, $ref. Another keyword is an error of the
// schema.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinter::test {

using Json = nlohmann::ordered_json;

/// The schema docs/schemas/NAME.schema.json.
const Json& schema_named(const std::string& name);

/// The violations of the schema NAME in `value`, each as "/pointer: what". Stricter than the
/// standard in one thing: a member that an object's `properties` do not list is not allowed, unless
/// `additionalProperties` are.
std::vector<std::string> schema_violations(const std::string& name, const Json& value);

}  // namespace sinter::test
