// A schema for people: tables of the members that its descriptions explain.
#pragma once

#include <string>

namespace sinter::test {

/// A section of a page about the schema docs/schemas/NAME.schema.json: its title, its members, and
/// a part with a heading for each of its definitions.
std::string schema_section(const std::string& name);

}  // namespace sinter::test
